// The headers that kernels may include, and the files of the prelude that they stand for.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace stride::cpucuda {

// Each path that an #include may name, with its text: one that includes a file of the
// prelude, or an empty one where everything that the header declares is there without it.
std::vector<std::pair<std::string, std::string>> HeaderNames();

}  // namespace stride::cpucuda
