// The device prelude and the stand-in system headers, as text inside this binary.
#pragma once

#include <string_view>

namespace stride::cpucuda {

struct PreludeFile {
  std::string_view name;
  std::string_view text;  // followed by a zero byte
};

const PreludeFile* PreludeFilesBegin();
const PreludeFile* PreludeFilesEnd();

}  // namespace stride::cpucuda
