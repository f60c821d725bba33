#pragma once

#include <string>
#include <string_view>

namespace stride::cuda {

// A compiler's log in a form for clients: without the machine's folders in file names, at most 64
// KiB.
std::string CleanLog(std::string_view log);

}  // namespace stride::cuda
