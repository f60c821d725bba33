#pragma once

#include <string>

namespace stride {

// The stamp of this program's file: another one for each build, the same for every copy and
// installation of one build. It is part of the names of files that another version would make
// otherwise. The linker's GNU build id, a hash of the program; without one, the file's size and
// time, which a copy may change.
std::string ExecutableStamp();

// The same of the program at `path`.
std::string ExecutableStamp(const std::string& path);

}  // namespace stride
