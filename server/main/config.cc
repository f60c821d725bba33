#include "server/main/config.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace stride {
namespace {

std::string RuntimeFolder() {
  for (const char* name : {"RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"}) {
    const char* value = std::getenv(name);
    // systemd separates several folders by colons.
    if (value != nullptr && value[0] == '/')
      return std::string(value).substr(0, std::string(value).find(':'));
  }
  return "/run/stride";
}

}  // namespace

std::vector<std::string> DefaultAddresses() {
  return {absl::StrCat("unix:", RuntimeFolder(), "/stride.sock"), "tcp:127.0.0.1:7433"};
}

}  // namespace stride
