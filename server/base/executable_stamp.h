#pragma once

#include <string>

namespace stride {

// Of this program's file: another one for each build and installation of it. For the names of what
// it makes and keeps, which another version would make otherwise.
std::string ExecutableStamp();

}  // namespace stride
