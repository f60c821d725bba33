#pragma once

namespace stride::cuda {

// Our <cooperative_groups.h> for NVRTC: what kernels commonly use of it. The toolkit's own costs a
// second of compile time, and a machine need not have it.
const char* GroupsHeader();

}  // namespace stride::cuda
