#pragma once

#include <vector>

namespace stride::cuda {

// Small C headers that NVRTC gets from memory. Many kernel files include <stdio.h>, <math.h> and
// similar headers; NVRTC has their functions but no such files, and no folder of the machine is
// searched.
struct StubHeaders {
  static const StubHeaders& Get();
  // Without <cooperative_groups.h>, which is then the toolkit's.
  static const StubHeaders& WithoutGroups();
  std::vector<const char*> names, texts;  // equally long
};

}  // namespace stride::cuda
