#pragma once

#include <vector>

namespace stride::cuda {

// Small C headers given to NVRTC from memory. Real kernel files include <stdio.h>, <math.h> and the
// like out of habit; NVRTC knows the functions but has no such files, and no folder of the machine
// is searched for them.
struct StubHeaders {
  static const StubHeaders& Get();
  // Without <cooperative_groups.h>, which is then the toolkit's.
  static const StubHeaders& WithoutGroups();
  std::vector<const char*> names, texts;  // of equal length
};

}  // namespace stride::cuda
