// One kernel that runs any elementwise program: one instruction after another, each over a block of
// elements. Last of the device headers, after the block loops, each of which is
//   ST_LOOP void NAME(ST_LOOP_PARAMETERS)
// in the table st_block_loops. The launch's layout is in block_launch.h. One thread computes an
// element throughout, and the element has the same index in each slot for all types, so no step
// waits for another thread.

#if ST_CUDA
#define ST_THREAD ((st_i32)threadIdx.x)
#define ST_THREADS ((st_i32)blockDim.x)
#else
#define ST_THREAD 0
#define ST_THREADS 1
#endif

struct st_block_operand {
  char* data;
  st_i32 item, contiguous;
};
struct st_block_step {
  st_u16 code;          // a loop's index, or one of st_step
  st_u16 arguments[3];  // places; load and store: [0] is the operand
  st_u16 value;         // a place
  st_u16 unused;
  st_u8 strides[4];  // bytes between elements of the arguments and the value; 0: one for all
};
enum st_step { ST_LOAD = 0xFFFF, ST_STORE = 0xFFFE, ST_INDEX = 0xFFFD };
// stored above the 14 bits of the number
enum st_place { ST_SLOT = 0, ST_OPERAND = 1, ST_CONSTANT = 2 };

// Followed by extents[rank], operands, strides[rank] of each operand, constants of 16 bytes each,
// and steps. Fields with `at` are bytes from the launch's start.
struct st_block_launch {
  st_i64 count;
  st_i32 block, slot_stride;  // elements of a block, bytes between elements of a slot
  st_i32 rank, num_steps;
  st_i32 operands_at, strides_at, constants_at, steps_at;
  st_i64 begin;  // elements [begin, count) are computed
};

ST_FN const char* st_at(const st_block_launch& launch, st_i32 offset) {
  return (const char*)&launch + offset;
}
ST_FN const st_block_operand& st_operand_of(const st_block_launch& launch, st_i32 number) {
  return ((const st_block_operand*)st_at(launch, launch.operands_at))[number];
}

// Address of the block's first element of a value. `stride`: bytes between elements.
ST_FN char* st_place_of(const st_block_launch& launch, char* slots, st_u16 place, st_u8 stride,
                        st_i64 first) {
  const st_i32 kind = place >> 14, number = place & 0x3FFF;
  if (kind == ST_SLOT) return slots + number * launch.block * launch.slot_stride;
  if (kind == ST_CONSTANT) return (char*)st_at(launch, launch.constants_at) + number * 16;
  return st_operand_of(launch, number).data + first * stride;
}

template <class Index>
ST_FN st_i64 st_offset_of(const st_block_launch& launch, st_i32 operand, st_i64 element) {
  const st_i64* const extents = (const st_i64*)(&launch + 1);
  const st_i64* const strides =
      (const st_i64*)st_at(launch, launch.strides_at) + operand * launch.rank;
  Index rest = (Index)element;
  st_i64 offset = 0;
  for (st_i32 axis = launch.rank - 1; axis > 0; --axis) {
    const Index extent = (Index)extents[axis], next = rest / extent;
    offset += (st_i64)(rest - next * extent) * strides[axis];
    rest = next;
  }
  return offset + (st_i64)rest * strides[0];
}

// An element of 16 bytes, aligned to 8.
struct st_block_wide {
  st_u64 words[2];
};
ST_FN void st_move(char* to, const char* from, st_i32 item) {
  switch (item) {
    case 1:
      *(st_u8*)to = *(const st_u8*)from;
      return;
    case 2:
      *(st_u16*)to = *(const st_u16*)from;
      return;
    case 4:
      *(st_u32*)to = *(const st_u32*)from;
      return;
    case 8:
      *(st_u64*)to = *(const st_u64*)from;
      return;
    default:
      *(st_block_wide*)to = *(const st_block_wide*)from;
  }
}

// Copies between an operand in any layout and elements `stride` bytes apart.
ST_FN void st_move_block(const st_block_launch& launch, st_i32 number, char* block, st_i32 stride,
                         st_i64 first, st_i32 n, bool is_load) {
  const st_block_operand& operand = st_operand_of(launch, number);
#pragma unroll 1
  for (st_i32 i = ST_THREAD; i < n; i += ST_THREADS) {
    st_i64 offset;
    if (operand.contiguous) {
      offset = (first + i) * operand.item;
    } else if (launch.count <= 0xFFFFFFFFll) {
      offset = st_offset_of<st_u32>(launch, number, first + i);
    } else {
      offset = st_offset_of<st_u64>(launch, number, first + i);
    }
    char* const there = operand.data + offset;
    char* const here = block + (st_i64)i * stride;
    st_move(is_load ? here : there, is_load ? there : here, operand.item);
  }
}

ST_FN void st_run_step(const st_block_launch& launch, const st_block_step& step, char* slots,
                       st_i64 first, st_i32 n) {
  char* const value = st_place_of(launch, slots, step.value, step.strides[3], first);
  if (step.code == ST_LOAD || step.code == ST_STORE) {
    st_move_block(launch, step.arguments[0], value, step.strides[3], first, n,
                  step.code == ST_LOAD);
  } else if (step.code == ST_INDEX) {
    for (st_i32 i = ST_THREAD; i < n; i += ST_THREADS)
      *(st_i64*)(value + i * step.strides[3]) = first + i;
  } else {
    const char* arguments[3];
    for (st_i32 k = 0; k < 3; ++k)
      arguments[k] = st_place_of(launch, slots, step.arguments[k], step.strides[k], first);
    const st_u32 strides = (st_u32)step.strides[0] | (st_u32)step.strides[1] << 8 |
                           (st_u32)step.strides[2] << 16 | (st_u32)step.strides[3] << 24;
    st_block_loops[step.code](arguments[0], arguments[1], arguments[2], value, strides, n);
  }
}

ST_FN void st_run_blocks(const st_block_launch& launch, char* slots, st_i64 start, st_i64 skip) {
  const st_block_step* const steps = (const st_block_step*)st_at(launch, launch.steps_at);
  for (st_i64 first = launch.begin + start * launch.block; first < launch.count;
       first += skip * launch.block) {
    const st_i64 left = launch.count - first;
    const st_i32 n = left < launch.block ? (st_i32)left : launch.block;
    for (st_i32 i = 0; i < launch.num_steps; ++i) st_run_step(launch, steps[i], slots, first, n);
  }
}

#if ST_CUDA
template <int kBytes>
struct alignas(16) st_block_bytes {
  char bytes[kBytes];
};
extern __shared__ __align__(16) char st_slots[];
// 64 registers for 4 resident blocks; the complex functions need all of them.
#define ST_BLOCKS_KERNEL(name, size)                                                       \
  extern "C" __global__ void __launch_bounds__(256)                                        \
      name(const __grid_constant__ st_block_bytes<size> launch, const st_end_mark mark) {  \
    st_run_blocks(*(const st_block_launch*)launch.bytes, st_slots, blockIdx.x, gridDim.x); \
    st_tell_end(mark, gridDim.x);                                                          \
  }
#else
ST_ENTRY void stride_blocks(const st_block_launch* launch, char* slots, st_i64 start, st_i64 skip) {
  st_run_blocks(*launch, slots, start, skip);
}
#endif
