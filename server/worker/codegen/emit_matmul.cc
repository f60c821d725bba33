#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/worker/codegen/device_headers.h"
#include "server/worker/codegen/emit.h"
#include "server/worker/codegen/launch_abi.h"
#include "server/worker/codegen/program_text.h"

namespace stride::codegen {
namespace {

constexpr char kLaunch[] = R"(
typedef $left Left;
typedef $right Right;
typedef $result Result;
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

// Row by row, with blocks of columns that stay in the first-level cache while the right factor's
// rows are read. Where both factors are contiguous along the axis of the sums (by a vector, by a
// transpose), element by element.
constexpr char kCpu[] = R"(
enum { kBlock = 512 };

ST_ENTRY void stride_run(const Launch* launch_pointer, st_i64 begin, st_i64 end) {
  typedef Result T;
  const Launch& launch = *launch_pointer;
  const st_i64 right_step = launch.right.strides[kColumn], left_item = sizeof(Left), right_item = sizeof(Right);
  const bool along = launch.left.strides[kColumn] == left_item && launch.right.strides[kRow] == right_item;
  for (st_i64 item = begin; item < end; ++item) {
    const st_i64 batch = item / launch.m, row = item % launch.m;
    const char* const left = matrix_of(launch, launch.left, batch) + row * launch.left.strides[kRow];
    const char* const right = matrix_of(launch, launch.right, batch);
    char* const output = matrix_of(launch, launch.output, batch) + row * launch.output.strides[kRow];
    for (st_i64 j = 0; along && j < launch.n; ++j) {
      const char* const others = right + j * right_step;
      T sum = 0;
      for (st_i64 i = 0; i < launch.k; ++i)
        sum = st_add(sum, st_multiply(st_cast<T>(st_load<Left>(left + i * left_item)),
                                      st_cast<T>(st_load<Right>(others + i * right_item))));
      st_store<T>(output + j * launch.output.strides[kColumn], sum);
    }
    for (st_i64 start = 0; !along && start < launch.n; start += kBlock) {
      const st_i64 n = launch.n - start < kBlock ? launch.n - start : kBlock;
      T sums[kBlock];
      for (st_i64 j = 0; j < n; ++j) sums[j] = 0;
      for (st_i64 i = 0; i < launch.k; ++i) {
        const T factor = st_cast<T>(st_load<Left>(left + i * launch.left.strides[kColumn]));
        const char* const others = right + i * launch.right.strides[kRow] + start * right_step;
        if (right_step == right_item) {
          ST_IVDEP
          for (st_i64 j = 0; j < n; ++j)
            sums[j] =
                st_add(sums[j], st_multiply(factor, st_cast<T>(st_load<Right>(others + j * (st_i64)sizeof(Right)))));
        } else {
          for (st_i64 j = 0; j < n; ++j)
            sums[j] = st_add(sums[j], st_multiply(factor, st_cast<T>(st_load<Right>(others + j * right_step))));
        }
      }
      for (st_i64 j = 0; j < n; ++j) st_store<T>(output + (start + j) * launch.output.strides[kColumn], sums[j]);
    }
  }
}
)";

absl::StatusOr<std::string> Emit(const wire::MatmulCode& code, Target target) {
  std::vector<DType> dtypes;
  for (const int32_t number : {code.dtype(), code.left(), code.right()}) {
    const std::optional<DType> dtype = DTypeFromNumber(number);
    if (!dtype || !(IsBool(*dtype) || IsInteger(*dtype)))
      return absl::InternalError("generated matrix products are of integers and bool");
    dtypes.push_back(*dtype);
  }
  const bool of_bytes = ItemSize(dtypes[1]) == 1 && ItemSize(dtypes[2]) == 1;
  if (of_bytes ? ItemSize(dtypes[0]) > 4 : dtypes[1] != dtypes[0] || dtypes[2] != dtypes[0])
    return absl::InternalError("a generated matrix product of types that do not fit");
  const char* const text = target == Target::kCpu ? kCpu
                           : of_bytes             ? kBytesRoutine
                                                  : kProductsRoutine;
  return absl::StrReplaceAll(absl::StrCat(Preamble(target, dtypes), kLaunch, text),
                             {{"$rank", absl::StrCat(kMaxRank)},
                              {"$result", TypeName(dtypes[0])},
                              {"$left", TypeName(dtypes[1])},
                              {"$right", TypeName(dtypes[2])}});
}

}  // namespace

absl::StatusOr<std::string> EmitMatmulCuda(const wire::MatmulCode& code) {
  return Emit(code, Target::kCuda);
}
absl::StatusOr<std::string> EmitMatmulCpu(const wire::MatmulCode& code) {
  return Emit(code, Target::kCpu);
}

}  // namespace stride::codegen
