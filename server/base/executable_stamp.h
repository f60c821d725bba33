#pragma once

#include <string>

namespace stride {

// The stamp of this program's file: different for each build, the same for all copies and
// installations of one build. It is part of the names of files whose content depends on the
// version. It is the linker's GNU build id, a hash of the program; without one, the file's size and
// time, which a copy may change.
std::string ExecutableStamp();

// The stamp of the program at `path`.
std::string ExecutableStamp(const std::string& path);

}  // namespace stride
