// threadIdx, blockIdx, blockDim, gridDim: objects whose members are computed.
#pragma once

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  STRIDE_EITHER constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  STRIDE_EITHER constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  STRIDE_EITHER constexpr operator uint3() const { return uint3{x, y, z}; }
};
STRIDE_DEVICE uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return uint3{x, y, z}; }

namespace __stride {
#define STRIDE_INDEX(name, ex, ey, ez)                                 \
  struct name {                                                        \
    __declspec(property(get = get_x)) unsigned x;                      \
    __declspec(property(get = get_y)) unsigned y;                      \
    __declspec(property(get = get_z)) unsigned z;                      \
    static STRIDE_METHOD unsigned get_x() { return ex; }               \
    static STRIDE_METHOD unsigned get_y() { return ey; }               \
    static STRIDE_METHOD unsigned get_z() { return ez; }               \
    STRIDE_METHOD operator uint3() const { return uint3{ex, ey, ez}; } \
    STRIDE_METHOD operator dim3() const { return dim3(ex, ey, ez); }   \
  };
#define STRIDE_FIELD(field, i) \
  __stride_field(__builtin_offsetof(stride::cpucuda::BlockContext, field) + 4 * i)
STRIDE_INDEX(ThreadIndex, __stride_tid_x(), __stride_tid_y(), __stride_tid_z())
STRIDE_INDEX(BlockIndex, STRIDE_FIELD(block_index, 0), STRIDE_FIELD(block_index, 1),
             STRIDE_FIELD(block_index, 2))
STRIDE_INDEX(BlockSize, STRIDE_FIELD(block, 0), STRIDE_FIELD(block, 1), STRIDE_FIELD(block, 2))
STRIDE_INDEX(GridSize, STRIDE_FIELD(grid, 0), STRIDE_FIELD(grid, 1), STRIDE_FIELD(grid, 2))
STRIDE_DEVICE unsigned num_threads() {
  return STRIDE_FIELD(block, 0) * STRIDE_FIELD(block, 1) * STRIDE_FIELD(block, 2);
}
}  // namespace __stride

static __device__ const __stride::ThreadIndex threadIdx{};
static __device__ const __stride::BlockIndex blockIdx{};
static __device__ const __stride::BlockSize blockDim{};
static __device__ const __stride::GridSize gridDim{};
static __device__ constexpr int warpSize = 32;
// Declares what <<<>>> needs, so that diagnostics of launches in host code differ from those in
// kernels.
extern "C" __attribute__((host)) int cudaConfigureCall(dim3 grid, dim3 block, size_t shared = 0,
                                                       void* stream = 0);
