// Products of matrices of integers of 16 bits and more on a GPU. The emitter declares Launch,
// matrix_of, kRow, kColumn and the type Result, which both factors have, before this text.
//
// A block computes a square of kSide x kSide threads, each with kEach x kEach results in registers.
// Shared memory has kDepth columns of the left factor and kDepth rows of the right one at a time,
// in the type of the sums.

// Sums are modulo 2^32 or 2^64, so that their low bits are the result's.
typedef st_traits<Result>::wide Sum;

enum { kSide = 16, kDepth = 16 };

// Element (i, j) of 16 x (16 * kEach) ones of a thread: neighbouring threads go along the axis with
// the shorter stride.
template <int kEach>
ST_FN void fetch(Sum (&held)[kEach], const char* data, st_i64 outer_stride, st_i64 depth_stride,
                 st_i64 outer, st_i64 depth, st_i64 num_outer, st_i64 num_depth, bool along_depth) {
  const int thread = threadIdx.x;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int place = thread + i * kSide * kSide;
    const int of_depth = along_depth ? place % kDepth : place / (kSide * kEach);
    const int of_outer = along_depth ? place / kDepth : place % (kSide * kEach);
    const st_i64 row = outer + of_outer, column = depth + of_depth;
    held[i] = row < num_outer && column < num_depth
                  ? (Sum)st_load<Result>(data + row * outer_stride + column * depth_stride)
                  : (Sum)0;
  }
}

template <int kEach>
ST_FN void keep(Sum (&tile)[kDepth][kSide * kEach + 4], const Sum (&held)[kEach],
                bool along_depth) {
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int place = (int)threadIdx.x + i * kSide * kSide;
    if (along_depth) {
      tile[place % kDepth][place / kDepth] = held[i];
    } else {
      tile[place / (kSide * kEach)][place % (kSide * kEach)] = held[i];
    }
  }
}

ST_FN st_i64 magnitude(st_i64 x) { return x < 0 ? -x : x; }

template <int kEach>
ST_FN void multiply_tiles(const Launch& launch) {
  enum { kTile = kSide * kEach };
  __shared__ __align__(16) Sum left_tile[kDepth][kTile + 4], right_tile[kDepth][kTile + 4];
  const st_i64* const left_strides = launch.left.strides;
  const st_i64* const right_strides = launch.right.strides;
  const bool left_along = magnitude(left_strides[kColumn]) <= magnitude(left_strides[kRow]);
  const bool right_along = magnitude(right_strides[kRow]) < magnitude(right_strides[kColumn]);
  const int x = threadIdx.x % kSide, y = threadIdx.x / kSide;
  const st_i64 first_column = (st_i64)blockIdx.x * kTile;
  for (st_i64 batch = blockIdx.z; batch < launch.batch_count; batch += gridDim.z) {
    const char* const left = matrix_of(launch, launch.left, batch);
    const char* const right = matrix_of(launch, launch.right, batch);
    char* const output = matrix_of(launch, launch.output, batch);
    for (st_i64 first_row = (st_i64)blockIdx.y * kTile; first_row < launch.m;
         first_row += (st_i64)gridDim.y * kTile) {
      Sum sums[kEach][kEach], of_left[kEach], of_right[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) sums[i][j] = 0;
      }
      for (st_i64 start = -kDepth; start < launch.k; start += kDepth) {
        // Load the next round's values while this one computes.
        const st_i64 next = start + kDepth;
        if (next < launch.k) {
          fetch<kEach>(of_left, left, left_strides[kRow], left_strides[kColumn], first_row, next,
                       launch.m, launch.k, left_along);
          fetch<kEach>(of_right, right, right_strides[kColumn], right_strides[kRow], first_column,
                       next, launch.n, launch.k, right_along);
        }
        if (start >= 0) {
#pragma unroll
          for (int d = 0; d < kDepth; ++d) {
            Sum a[kEach], b[kEach];
#pragma unroll
            for (int i = 0; i < kEach; ++i) a[i] = left_tile[d][y * kEach + i];
#pragma unroll
            for (int j = 0; j < kEach; ++j) b[j] = right_tile[d][x * kEach + j];
#pragma unroll
            for (int i = 0; i < kEach; ++i) {
#pragma unroll
              for (int j = 0; j < kEach; ++j) sums[i][j] += a[i] * b[j];
            }
          }
        }
        __syncthreads();
        if (next < launch.k) {
          keep<kEach>(left_tile, of_left, left_along);
          keep<kEach>(right_tile, of_right, right_along);
        }
        __syncthreads();
      }
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const st_i64 row = first_row + y * kEach + i;
#pragma unroll
        for (int j = 0; j < kEach; ++j) {
          const st_i64 column = first_column + x * kEach + j;
          if (row < launch.m && column < launch.n) {
            st_store<Result>(output + row * launch.output.strides[kRow] +
                                 column * launch.output.strides[kColumn],
                             (Result)sums[i][j]);
          }
        }
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(256)
    stride_matmul(const __grid_constant__ Launch launch, const st_end_mark mark) {
  multiply_tiles<4>(launch);
  st_tell_end(mark, gridDim.x * gridDim.y * gridDim.z);
}

extern "C" __global__ void __launch_bounds__(256)
    stride_small_matmul(const __grid_constant__ Launch launch, const st_end_mark mark) {
  multiply_tiles<1>(launch);
  st_tell_end(mark, gridDim.x * gridDim.y * gridDim.z);
}
