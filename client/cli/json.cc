#include "client/cli/json.h"

#include <charconv>
#include <cmath>

namespace stride::cli {

Json Json::String(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += kHex[c >> 4 & 15];
      out += kHex[c & 15];
    } else {
      out += c;
    }
  }
  return Json(out + '"');
}

Json Json::Number(double value) {
  if (!std::isfinite(value)) return Null();
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return Json(std::string(buffer, end));
}

Json Json::Array(const std::vector<Json>& items) {
  std::string out = "[";
  for (size_t i = 0; i < items.size(); ++i) out += (i > 0 ? "," : "") + items[i].text();
  return Json(out + "]");
}

Json Json::Object(const std::vector<std::pair<std::string, Json>>& members) {
  std::string out = "{";
  for (size_t i = 0; i < members.size(); ++i) {
    out += (i > 0 ? "," : "") + String(members[i].first).text() + ":" + members[i].second.text();
  }
  return Json(out + "}");
}

}  // namespace stride::cli
