#include "server/base/json_text.h"

#include <cstdio>

namespace stride {

std::string EscapeJson(std::string_view text) {
  std::string out;
  for (char c : text) {
    unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      char code[8];
      std::snprintf(code, sizeof(code), "\\u%04x", byte);
      out += code;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace stride
