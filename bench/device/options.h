// The command line that benchmarks of operations have in common.
#pragma once

#include <cstdlib>
#include <string>

namespace stride::bench {

struct Options {
  int rounds = 15;
  std::string only, json;

  // Whether the row is asked for: it holds one of the words between commas, or there are none. `id`
  // is without its device.
  bool Wants(const std::string& id) const {
    const std::string whole = "/" + id;
    for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
      end = only.find(',', begin);
      if (whole.find(only.substr(begin, end - begin)) != std::string::npos) return true;
    }
    return false;
  }
};

// False: no such option, or no such value.
inline bool TakeOption(const std::string& name, const std::string& value, Options* options) {
  if (name == "--only") {
    options->only = value;
  } else if (name == "--json") {
    options->json = value;
  } else if (name == "--rounds" && std::atoi(value.c_str()) > 0) {
    options->rounds = std::atoi(value.c_str());
  } else {
    return false;
  }
  return true;
}

}  // namespace stride::bench
