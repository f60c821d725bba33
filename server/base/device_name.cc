#include "server/base/device_name.h"

#include <charconv>

namespace stride {

namespace {

std::string_view WithoutPrefix(std::string_view name) {
  constexpr std::string_view kPrefix = "devices/";
  if (name.substr(0, kPrefix.size()) == kPrefix) name.remove_prefix(kPrefix.size());
  return name;
}

}  // namespace

bool NamesDevice(std::string_view asked, std::string_view name, std::string_view kind, int index) {
  asked = WithoutPrefix(asked);
  if (asked == WithoutPrefix(name)) return true;
  if (kind.empty() || asked.substr(0, kind.size()) != kind) return false;
  asked.remove_prefix(kind.size());
  char number[16] = ":";
  const auto end = std::to_chars(number + 1, number + sizeof number, index).ptr;
  return asked == std::string_view(number, static_cast<size_t>(end - number));
}

}  // namespace stride
