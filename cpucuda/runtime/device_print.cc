#include "cpucuda/runtime/device_print.h"

#include <cstdio>
#include <cstring>

namespace stride::cpucuda {
namespace {

constexpr size_t kMaxPiece = 512;  // bytes one conversion may make

// "%-08.3" without length modifiers; `*` width is not taken (the argument's place would shift).
struct Conversion {
  char text[32];
  char letter = 0;
  size_t consumed = 0;
};

Conversion Parse(const char* at) {
  Conversion conversion;
  size_t used = 0, i = 1;
  conversion.text[used++] = '%';
  while (at[i] != 0 && std::strchr("-+ #0123456789.", at[i]) != nullptr && used < 12)
    conversion.text[used++] = at[i++];
  while (at[i] == 'l' || at[i] == 'h' || at[i] == 'z' || at[i] == 'j' || at[i] == 't') ++i;
  conversion.text[used] = 0;
  conversion.letter = at[i];
  conversion.consumed = at[i] == 0 ? i : i + 1;
  return conversion;
}

std::string Apply(Conversion conversion, const PrintArgument& argument) {
  char piece[kMaxPiece];
  size_t used = std::strlen(conversion.text);
  auto finish = [&](const char* tail) { std::strcpy(conversion.text + used, tail); };
  char letter[4] = {'l', 'l', conversion.letter, 0};
  switch (conversion.letter) {
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o': {
      long long value = argument.kind == PrintArgument::kDouble
                            ? static_cast<long long>(argument.real)
                            : argument.integer;
      bool is_unsigned = conversion.letter != 'd' && conversion.letter != 'i';
      if (is_unsigned && argument.size < 8) value &= (1ll << (argument.size * 8)) - 1;
      finish(letter);
      std::snprintf(piece, sizeof piece, conversion.text, value);
      return piece;
    }
    case 'c':
      return std::string(1, static_cast<char>(argument.integer));
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A': {
      double value = argument.kind == PrintArgument::kDouble
                         ? argument.real
                         : static_cast<double>(argument.integer);
      finish(letter + 2);
      std::snprintf(piece, sizeof piece, conversion.text, value);
      return piece;
    }
    case 'p':
      std::snprintf(piece, sizeof piece, "%p", argument.pointer);
      return piece;
    case 's':
      if (argument.kind != PrintArgument::kString || argument.string == nullptr) return "(null)";
      return std::string(argument.string, strnlen(argument.string, kMaxPiece));
    default:
      return std::string(conversion.text) + conversion.letter;
  }
}

}  // namespace

bool FormatDevicePrint(const char* format, const PrintArgument* arguments, unsigned num_arguments,
                       size_t limit, std::string& out) {
  unsigned next = 0;
  for (const char* at = format; *at != 0;) {
    if (out.size() >= limit) return false;
    if (*at != '%') {
      out += *at++;
      continue;
    }
    if (at[1] == '%') {
      out += '%';
      at += 2;
      continue;
    }
    Conversion conversion = Parse(at);
    bool takes =
        conversion.letter != 0 && std::strchr("diuxXocfFeEgGaAps", conversion.letter) != nullptr;
    std::string piece = takes && next < num_arguments ? Apply(conversion, arguments[next++])
                                                      : std::string(at, conversion.consumed);
    if (out.size() + piece.size() > limit) return false;
    out += piece;
    at += conversion.consumed;
  }
  return true;
}

}  // namespace stride::cpucuda
