#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/worker/codegen/emit.h"
#include "server/worker/codegen/launch_abi.h"
#include "server/worker/codegen/program_text.h"

namespace stride::codegen {
namespace {

constexpr char kLaunch[] = R"(
struct Matrix {
  char* data;
  st_i64 strides[$rank];
};
struct Launch {
  st_i64 m, n, k, batch_count, batch_rank;
  st_i64 batch_extents[$rank];
  Matrix left, right, output;
};
ST_FN char* matrix_of(const Launch& launch, const Matrix& matrix, st_i64 batch) {
  char* data = matrix.data;
  for (st_i64 axis = launch.batch_rank - 1; axis >= 0; --axis) {
    data += batch % launch.batch_extents[axis] * matrix.strides[axis];
    batch /= launch.batch_extents[axis];
  }
  return data;
}
enum { kRow = $rank - 2, kColumn = $rank - 1 };
)";

// 16 x 16 tiles of both factors in shared memory. The grid may be smaller than the matrix in y and
// z.
constexpr char kCuda[] = R"(
extern "C" __global__ void __launch_bounds__(256) stride_matmul(const __grid_constant__ Launch launch) {
  typedef $type T;
  __shared__ T left_tile[16][17], right_tile[16][17];
  const int x = threadIdx.x, y = threadIdx.y;
  const st_i64 column = (st_i64)blockIdx.x * 16 + x;
  for (st_i64 batch = blockIdx.z; batch < launch.batch_count; batch += gridDim.z) {
    const char* const left = matrix_of(launch, launch.left, batch);
    const char* const right = matrix_of(launch, launch.right, batch);
    char* const output = matrix_of(launch, launch.output, batch);
    for (st_i64 row_block = blockIdx.y; row_block * 16 < launch.m; row_block += gridDim.y) {
      const st_i64 row = row_block * 16 + y;
      T sum = 0;
      for (st_i64 start = 0; start < launch.k; start += 16) {
        const bool has_left = row < launch.m && start + x < launch.k;
        const bool has_right = column < launch.n && start + y < launch.k;
        left_tile[y][x] = has_left ? st_load<T>(left + row * launch.left.strides[kRow] + (start + x) * launch.left.strides[kColumn]) : (T)0;
        right_tile[y][x] = has_right ? st_load<T>(right + (start + y) * launch.right.strides[kRow] + column * launch.right.strides[kColumn]) : (T)0;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; ++i) sum = st_add(sum, st_multiply(left_tile[y][i], right_tile[i][x]));
        __syncthreads();
      }
      if (row < launch.m && column < launch.n) st_store<T>(output + row * launch.output.strides[kRow] + column * launch.output.strides[kColumn], sum);
    }
  }
}
)";

// Row by row, columns in blocks that stay in the first cache while the rows of the right factor
// pass by. Where both factors lie along what is summed (by a vector, by a transpose), each element
// for itself.
constexpr char kCpu[] = R"(
enum { kBlock = 512 };

ST_ENTRY void stride_run(const Launch* launch_pointer, st_i64 begin, st_i64 end) {
  typedef $type T;
  const Launch& launch = *launch_pointer;
  const st_i64 right_step = launch.right.strides[kColumn], item_size = sizeof(T);
  const bool along = launch.left.strides[kColumn] == item_size && launch.right.strides[kRow] == item_size;
  for (st_i64 item = begin; item < end; ++item) {
    const st_i64 batch = item / launch.m, row = item % launch.m;
    const char* const left = matrix_of(launch, launch.left, batch) + row * launch.left.strides[kRow];
    const char* const right = matrix_of(launch, launch.right, batch);
    char* const output = matrix_of(launch, launch.output, batch) + row * launch.output.strides[kRow];
    for (st_i64 j = 0; along && j < launch.n; ++j) {
      const char* const others = right + j * right_step;
      T sum = 0;
      for (st_i64 i = 0; i < launch.k; ++i) sum = st_add(sum, st_multiply(st_load<T>(left + i * item_size), st_load<T>(others + i * item_size)));
      st_store<T>(output + j * launch.output.strides[kColumn], sum);
    }
    for (st_i64 start = 0; !along && start < launch.n; start += kBlock) {
      const st_i64 n = launch.n - start < kBlock ? launch.n - start : kBlock;
      T sums[kBlock];
      for (st_i64 j = 0; j < n; ++j) sums[j] = 0;
      for (st_i64 i = 0; i < launch.k; ++i) {
        const T factor = st_load<T>(left + i * launch.left.strides[kColumn]);
        const char* const others = right + i * launch.right.strides[kRow] + start * right_step;
        if (right_step == sizeof(T)) {
          ST_IVDEP
          for (st_i64 j = 0; j < n; ++j) sums[j] = st_add(sums[j], st_multiply(factor, st_load<T>(others + j * (st_i64)sizeof(T))));
        } else {
          for (st_i64 j = 0; j < n; ++j) sums[j] = st_add(sums[j], st_multiply(factor, st_load<T>(others + j * right_step)));
        }
      }
      for (st_i64 j = 0; j < n; ++j) st_store<T>(output + (start + j) * launch.output.strides[kColumn], sums[j]);
    }
  }
}
)";

absl::StatusOr<std::string> Emit(const wire::MatmulCode& code, Target target) {
  auto dtype = DTypeFromNumber(code.dtype());
  if (!dtype || !(IsBool(*dtype) || IsInteger(*dtype))) {
    return absl::InternalError("generated matrix products are of integers and bool");
  }
  std::string text =
      absl::StrCat(Preamble(target, {*dtype}), kLaunch, target == Target::kCuda ? kCuda : kCpu);
  return absl::StrReplaceAll(text,
                             {{"$rank", absl::StrCat(kMaxRank)}, {"$type", TypeName(*dtype)}});
}

}  // namespace

absl::StatusOr<std::string> EmitMatmulCuda(const wire::MatmulCode& code) {
  return Emit(code, Target::kCuda);
}
absl::StatusOr<std::string> EmitMatmulCpu(const wire::MatmulCode& code) {
  return Emit(code, Target::kCpu);
}

}  // namespace stride::codegen
