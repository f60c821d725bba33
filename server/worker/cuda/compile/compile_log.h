#pragma once

#include <string>
#include <string_view>

namespace stride::cuda {

// A compiler's log as a client may see it: folders of this machine removed from file names, at most
// 64 KiB.
std::string CleanLog(std::string_view log);

}  // namespace stride::cuda
