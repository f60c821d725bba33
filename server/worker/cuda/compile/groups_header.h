#pragma once

namespace stride::cuda {

// Our <cooperative_groups.h> for NVRTC: the part that kernels commonly use. The toolkit's own costs
// a second of compile time, and a machine may lack it.
const char* GroupsHeader();

}  // namespace stride::cuda
