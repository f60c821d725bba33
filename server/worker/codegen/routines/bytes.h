// Products of matrices of 8-bit integers and bool on a GPU's tensor cores. The emitter declares
// Launch, matrix_of, kRow, kColumn and the types Left, Right and Result before this text.
//
// Sums are modulo 2^32. A block of 8 warps computes 128 x 128 results. Shared memory has 64 columns
// of the left factor and 64 rows of the right one at a time; registers have the next ones. A warp
// computes 64 x 32 results by mma.m16n8k32. The PTX manual, "Matrix Fragments for mma.m16n8k32",
// defines the part of a matrix in each lane, its fragment; ldmatrix moves 8 x 8 elements of 16
// bits.
//
// A factor has the same layout in shared memory as in device memory, in chunks of 16 bytes along
// the axis in which its elements are contiguous:
//   by depth   the other axis has 128 lines of 64 bytes. ldmatrix makes fragments of them.
//   across     the axis of the sums has 64 lines of 128 bytes. ldmatrix.trans moves pairs of
//              bytes. Two byte permutations separate the two neighbouring columns of each pair.
// Both layouts must have the same order of results. So row r of a fragment's 16 is row 2 r of the
// block's, or 2 (r - 8) + 1. Two fragments of 8 columns have the even and the odd ones of 16.

enum { kTile = 128, kDepth = 64, kChunk = 16, kThreads = 256, kTileBytes = kTile * kDepth };
enum { kFactors = 2, kHeld = kTileBytes / kChunk / kThreads };

struct Chunk {
  st_u32 words[4];
};

struct Factor {
  const char* data;
  // along the results' rows or columns, and along the axis of the sums
  st_i64 outer_stride, depth_stride;
  st_i64 num_outer, num_depth;
  bool by_depth;    // chunks lie along the axis of the sums
  bool neighbours;  // a chunk's bytes are contiguous
};

ST_FN Factor factor_of(const char* data, st_i64 outer_stride, st_i64 depth_stride, st_i64 num_outer,
                       st_i64 num_depth) {
  const bool across = outer_stride == 1 && depth_stride != 1;
  return Factor{
      data, outer_stride, depth_stride, num_outer, num_depth, !across, across || depth_stride == 1};
}

// Bytes of type bool: any nonzero byte becomes 1.
template <class T>
ST_FN st_u32 normalised(st_u32 word) {
  if constexpr (st_traits<T>::kind == ST_BOOL) {
    return __vminu4(word, 0x01010101u);
  } else {
    return word;
  }
}

// `count` of 1 to 16 bytes from an address on, padded with zeros. Reads whole aligned words, but
// only words with one of the bytes.
ST_FN Chunk read_bytes(const char* from, int count) {
  Chunk chunk;
  if (count == kChunk && (st_u64)from % kChunk == 0) {
    const uint4 words = *(const uint4*)from;
    chunk.words[0] = words.x;
    chunk.words[1] = words.y;
    chunk.words[2] = words.z;
    chunk.words[3] = words.w;
    return chunk;
  }
  const int skipped = (int)((st_u64)from % 4);
  const st_u32* const words = (const st_u32*)(from - skipped);
  st_u32 word = words[0];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int left = count - 4 * i;
    const st_u32 next = 4 * (i + 1) < skipped + count ? words[i + 1] : 0u;
    const st_u32 whole = __funnelshift_r(word, next, 8 * skipped);
    chunk.words[i] = left >= 4 ? whole : left <= 0 ? 0u : whole & ((1u << (8 * left)) - 1u);
    word = next;
  }
  return chunk;
}

// The first of the kHeld chunks of each tile that this thread reads. The next ones are `kThreads`
// chunks further, on other lines at the same position.
struct Reader {
  const char* from;
  int line, start;  // within the tile
  st_i64 further;   // bytes to the next chunk
};

ST_FN Reader reader_of(const Factor& factor, st_i64 first) {
  const int per_line = (factor.by_depth ? kDepth : kTile) / kChunk;
  const int line = (int)threadIdx.x / per_line, start = (int)threadIdx.x % per_line * kChunk;
  const st_i64 outer = first + (factor.by_depth ? line : start);
  const st_i64 depth = factor.by_depth ? start : line;
  return Reader{
      factor.data + outer * factor.outer_stride + depth * factor.depth_stride, line, start,
      kThreads / per_line * (factor.by_depth ? factor.outer_stride : factor.depth_stride)};
}

ST_FN int clamped(st_i64 count) { return count < kChunk ? count < 0 ? 0 : (int)count : kChunk; }

// Chunk i of the tile that begins at (first, depth).
template <class T>
ST_FN Chunk read_chunk(const Factor& factor, const Reader& reader, int i, st_i64 first,
                       st_i64 depth) {
  const int per_line = (factor.by_depth ? kDepth : kTile) / kChunk;
  const int line = reader.line + i * (kThreads / per_line);
  const st_i64 outer_left = factor.num_outer - first, depth_left = factor.num_depth - depth;
  const st_i64 lines_left = factor.by_depth ? outer_left : depth_left;
  const int count = clamped((factor.by_depth ? depth_left : outer_left) - reader.start);
  Chunk chunk = {{0, 0, 0, 0}};
  if (count == 0 || line >= lines_left) return chunk;
  const char* const from = reader.from + depth * factor.depth_stride + i * reader.further;
  if (factor.neighbours) {
    chunk = read_bytes(from, count);
  } else {
#pragma unroll
    for (int j = 0; j < kChunk; ++j) {
      const st_u32 byte = j < count ? (st_u32)(st_u8)from[j * factor.depth_stride] : 0u;
      chunk.words[j / 4] |= byte << (j % 4 * 8);
    }
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) chunk.words[j] = normalised<T>(chunk.words[j]);
  return chunk;
}

// Byte offset of a chunk in a tile. The 8 chunks that ldmatrix reads together, on lines 2 apart or
// pairs of lines 4 apart, are in different banks.
ST_FN int by_depth_place(int line, int chunk) {
  const int pair = line / 16 * 8 + line % 8, half = line / 8 % 2;
  return pair * 128 + half * 64 + (chunk ^ (line / 2 % 4)) * kChunk;
}
ST_FN int across_place(int line, int chunk) {
  return line * 128 + (chunk ^ (line / 4 % 4 * 2 + line % 2)) * kChunk;
}

ST_FN void keep_chunk(const Factor& factor, char* tile, int place, const Chunk& chunk) {
  const int per_line = (factor.by_depth ? kDepth : kTile) / kChunk;
  const int line = place / per_line, of_line = place % per_line;
  char* const to =
      tile + (factor.by_depth ? by_depth_place(line, of_line) : across_place(line, of_line));
  *(uint4*)to = make_uint4(chunk.words[0], chunk.words[1], chunk.words[2], chunk.words[3]);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
// Four 8 x 8 matrices of 16 bits: lane 8 i + j has the address of line j of the i-th.
ST_FN void load_matrices(st_u32 (&words)[4], const char* line) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"((st_u32)__cvta_generic_to_shared(line))
               : "memory");
}
ST_FN void load_transposed(st_u32 (&words)[4], const char* line) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"((st_u32)__cvta_generic_to_shared(line))
               : "memory");
}
#define ST_MMA(left, right)                                                           \
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." left "." right                \
               ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])           \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(low), "r"(high))
template <bool left_is_signed, bool right_is_signed>
ST_FN void multiply_add(st_i32 (&sums)[4], const st_u32 (&a)[4], st_u32 low, st_u32 high) {
  if constexpr (left_is_signed && right_is_signed) {
    ST_MMA("s8", "s8");
  } else if constexpr (left_is_signed) {
    ST_MMA("s8", "u8");
  } else if constexpr (right_is_signed) {
    ST_MMA("u8", "s8");
  } else {
    ST_MMA("u8", "u8");
  }
}
#else
// Devices before sm_80 lack these instructions: lanes exchange the values by shuffles. Not inlined,
// since the code is long.
ST_FN const char* line_of_lane(const char* line, int lane) {
  return (const char*)__shfl_sync(0xFFFFFFFFu, (st_u64)line, lane);
}
__device__ __noinline__ void load_matrices(st_u32 (&words)[4], const char* line) {
  const int lane = threadIdx.x % 32;
  for (int i = 0; i < 4; ++i)
    words[i] = *(const st_u32*)(line_of_lane(line, 8 * i + lane / 4) + lane % 4 * 4);
}
__device__ __noinline__ void load_transposed(st_u32 (&words)[4], const char* line) {
  const int lane = threadIdx.x % 32;
  for (int i = 0; i < 4; ++i) {
    const char* const first = line_of_lane(line, 8 * i + lane % 4 * 2);
    const char* const second = line_of_lane(line, 8 * i + lane % 4 * 2 + 1);
    words[i] = *(const st_u16*)(first + lane / 4 * 2) |
               (st_u32) * (const st_u16*)(second + lane / 4 * 2) << 16;
  }
}
template <bool is_signed>
ST_FN st_i32 byte_of(st_u32 word, int i) {
  const st_u32 byte = word >> (8 * i) & 0xFFu;
  return is_signed ? (st_i32)(st_i8)byte : (st_i32)byte;
}
template <bool left_is_signed, bool right_is_signed>
__device__ __noinline__ void multiply_add(st_i32 (&sums)[4], const st_u32 (&a)[4], st_u32 low,
                                          st_u32 high) {
  const int lane = threadIdx.x % 32, row = lane / 4 * 4, column = lane % 4 * 8;
  for (int from = 0; from < 4; ++from) {
    for (int half = 0; half < 2; ++half) {
      for (int i = 0; i < 4; ++i) {
        const st_u32 x = __shfl_sync(0xFFFFFFFFu, a[2 * half + i / 2], row + from);
        const st_u32 y =
            __shfl_sync(0xFFFFFFFFu, half == 0 ? low : high, column + i % 2 * 4 + from);
        for (int j = 0; j < 4; ++j) {
          sums[i] = (st_i32)((st_u32)sums[i] + (st_u32)(byte_of<left_is_signed>(x, j) *
                                                        byte_of<right_is_signed>(y, j)));
        }
      }
    }
  }
}
#endif

// Offset of this lane's line of ldmatrix for the first fragment of a tile.
ST_FN int first_line(bool by_depth) {
  const int lane = threadIdx.x % 32, matrix = lane / 8, i = lane % 8;
  // Bytes 2 i and 2 i + 1 of a transposed word are from lines 4 i and 4 i + 1, those of the next
  // word from 4 i + 2 and 4 i + 3.
  return by_depth ? by_depth_place(2 * i + matrix % 2, matrix / 2)
                  : across_place(matrix / 2 * 16 + i / 2 * 4 + i % 2 + matrix % 2 * 2, 0);
}

// The four words of a fragment with rows [first, first + 16) of a tile and bytes [depth, depth +
// 32), where `first` is a multiple of 16 and `depth` of 32: both only change bits that are 0 in
// first_line's result. The right factor: words 0 and 2 are the fragment of the even columns, 1 and
// 3 of the odd ones.
ST_FN void read_fragment(st_u32 (&words)[4], const char* tile, bool by_depth, int line, int first,
                         int depth) {
  if (by_depth) {
    load_matrices(words, tile + (line ^ depth) + first * kDepth);
    return;
  }
  st_u32 pairs[4];
  load_transposed(pairs, tile + (line ^ first) + depth * kTile);
  words[0] = __byte_perm(pairs[0], pairs[1], 0x6420);
  words[1] = __byte_perm(pairs[0], pairs[1], 0x7531);
  words[2] = __byte_perm(pairs[2], pairs[3], 0x6420);
  words[3] = __byte_perm(pairs[2], pairs[3], 0x7531);
}

// Four neighbouring results in a row.
struct alignas(4 * sizeof(Result)) Results {
  typename st_stored<Result>::type values[4];
};

ST_FN void store_results(const Launch& launch, char* output, st_i64 row, st_i64 column,
                         const st_i32 (&sums)[4]) {
  if (row >= launch.m || column >= launch.n) return;
  char* const to = output + row * launch.output.strides[kRow] + column * (st_i64)sizeof(Result);
  if (column + 4 <= launch.n && (st_u64)to % sizeof(Results) == 0) {
    Results results;
#pragma unroll
    for (int i = 0; i < 4; ++i) results.values[i] = st_cast<Result>(sums[i]);
    *(Results*)to = results;
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (column + i < launch.n) st_store<Result>(to + i * sizeof(Result), st_cast<Result>(sums[i]));
  }
}

ST_FN void multiply_bytes(const Launch& launch, char* output, const Factor& left,
                          const Factor& right, st_i64 first_row, st_i64 first_column) {
  __shared__ __align__(128) char tiles[2][kFactors][kTileBytes];
  constexpr bool left_is_signed = st_traits<Left>::lowest != 0;
  constexpr bool right_is_signed = st_traits<Right>::lowest != 0;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const int warp_row = warp / 4 * 64, warp_column = warp % 4 * 32;
  st_i32 sums[4][2][2][4];  // by 16 rows, 16 columns, and even or odd columns
#pragma unroll
  for (int i = 0; i < 4 * 2 * 2 * 4; ++i) (&sums[0][0][0][0])[i] = 0;
  const int left_line = first_line(left.by_depth), right_line = first_line(right.by_depth);
  const Reader left_reader = reader_of(left, first_row);
  const Reader right_reader = reader_of(right, first_column);
  Chunk of_left[kHeld], of_right[kHeld];
  int used = 0;
  for (st_i64 start = -kDepth; start < launch.k; start += kDepth) {
    // Load the next round's values while this one computes.
    const st_i64 next = start + kDepth;
    if (next < launch.k) {
#pragma unroll
      for (int i = 0; i < kHeld; ++i) {
        of_left[i] = read_chunk<Left>(left, left_reader, i, first_row, next);
        of_right[i] = read_chunk<Right>(right, right_reader, i, first_column, next);
      }
    }
    if (start >= 0) {
#pragma unroll
      for (int depth = 0; depth < kDepth; depth += 32) {
        st_u32 a[4][4], b[2][4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
          read_fragment(a[i], tiles[used][0], left.by_depth, left_line, warp_row + 16 * i, depth);
#pragma unroll
        for (int j = 0; j < 2; ++j)
          read_fragment(b[j], tiles[used][1], right.by_depth, right_line, warp_column + 16 * j,
                        depth);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
          for (int j = 0; j < 2; ++j) {
#pragma unroll
            for (int odd = 0; odd < 2; ++odd)
              multiply_add<left_is_signed, right_is_signed>(sums[i][j][odd], a[i], b[j][odd],
                                                            b[j][odd + 2]);
          }
        }
      }
    }
    if (next < launch.k) {
#pragma unroll
      for (int i = 0; i < kHeld; ++i) {
        keep_chunk(left, tiles[used ^ 1][0], thread + i * kThreads, of_left[i]);
        keep_chunk(right, tiles[used ^ 1][1], thread + i * kThreads, of_right[i]);
      }
    }
    __syncthreads();
    used ^= 1;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const st_i64 row = first_row + warp_row + 16 * i + lane / 4 * 2;
      const st_i64 column = first_column + warp_column + 16 * j + lane % 4 * 4;
      const st_i32(&even)[4] = sums[i][j][0];
      const st_i32(&odd)[4] = sums[i][j][1];
      const st_i32 upper[4] = {even[0], odd[0], even[1], odd[1]};
      const st_i32 lower[4] = {even[2], odd[2], even[3], odd[3]};
      store_results(launch, output, row, column, upper);
      store_results(launch, output, row + 1, column, lower);
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    stride_byte_matmul(const __grid_constant__ Launch launch, const st_end_mark mark) {
  const st_i64 first_column = (st_i64)blockIdx.x * kTile;
  for (st_i64 batch = blockIdx.z; batch < launch.batch_count; batch += gridDim.z) {
    const Factor left = factor_of(matrix_of(launch, launch.left, batch), launch.left.strides[kRow],
                                  launch.left.strides[kColumn], launch.m, launch.k);
    const Factor right =
        factor_of(matrix_of(launch, launch.right, batch), launch.right.strides[kColumn],
                  launch.right.strides[kRow], launch.n, launch.k);
    char* const output = matrix_of(launch, launch.output, batch);
    for (st_i64 first_row = (st_i64)blockIdx.y * kTile; first_row < launch.m;
         first_row += (st_i64)gridDim.y * kTile) {
      multiply_bytes(launch, output, left, right, first_row, first_column);
    }
  }
  st_tell_end(mark, gridDim.x * gridDim.y * gridDim.z);
}
