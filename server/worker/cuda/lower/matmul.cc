#include "server/worker/cuda/lower/matmul.h"

#include <algorithm>
#include <vector>

#include "server/store/dtype.h"
#include "server/worker/cuda/driver/cuda_status.h"
#include "server/worker/cuda/lower/emitted.h"
#include "server/worker/cuda/lower/matmul_plan.h"

namespace stride::cuda {
namespace {

constexpr uint64_t kScratchAlignment = 256;

std::vector<int64_t> Extents(const wire::MatmulLaunch& launch, int64_t rows, int64_t columns) {
  std::vector<int64_t> extents(launch.batch_extents().begin(), launch.batch_extents().end());
  extents.push_back(rows);
  extents.push_back(columns);
  return extents;
}

uint64_t CopyBytesOf(const MatmulFactor& factor, int64_t batch_count, int64_t item) {
  if (!factor.copy) return 0;
  const uint64_t bytes =
      static_cast<uint64_t>(factor.NumCopies(batch_count)) * factor.rows * factor.columns * item;
  return (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
}

// The factor in a layout for BLAS: in place, or copied to `scratch` first.
absl::StatusOr<BlasMatrix> Place(const Lowering& lowering, Gather& gather,
                                 const MatmulFactor& factor, int64_t batch_count, int64_t item,
                                 CUdeviceptr address, CUdeviceptr scratch) {
  if (!factor.copy) {
    return BlasMatrix{address, factor.leading, factor.batch_stride, factor.transposed};
  }
  const GatherSource source{
      address,           factor.rows,          factor.columns,     factor.NumCopies(batch_count),
      factor.row_stride, factor.column_stride, factor.batch_stride};
  absl::Status status = gather.Run(lowering, source, item, scratch);
  if (!status.ok()) return status;
  const int64_t batch_stride = factor.batch_stride == 0 ? 0 : factor.rows * factor.columns;
  return BlasMatrix{scratch, factor.columns, batch_stride, false};
}

// Steps through all combinations of the loops, the last loop fastest. False after the last one.
bool Advance(const std::vector<MatmulLoop>& loops, std::vector<int64_t>* index) {
  for (size_t i = loops.size(); i-- > 0;) {
    if (++(*index)[i] < loops[i].extent) return true;
    (*index)[i] = 0;
  }
  return false;
}

}  // namespace

absl::Status Matmul::Lower(const Lowering& lowering, KernelModule* module,
                           const wire::MatmulLaunch& launch) {
  absl::StatusOr<CUdeviceptr> left =
      lowering.arenas.Address(launch.left(), Extents(launch, launch.m(), launch.k()));
  if (!left.ok()) return left.status();
  absl::StatusOr<CUdeviceptr> right =
      lowering.arenas.Address(launch.right(), Extents(launch, launch.k(), launch.n()));
  if (!right.ok()) return right.status();
  const std::vector<int64_t> output_extents = Extents(launch, launch.m(), launch.n());
  absl::StatusOr<CUdeviceptr> output = lowering.arenas.Address(launch.output(), output_extents);
  if (!output.ok()) return output.status();
  if (std::find(output_extents.begin(), output_extents.end(), 0) != output_extents.end()) {
    return absl::OkStatus();
  }
  if (module != nullptr) {
    auto prepared = PrepareEmitted(lowering, *module, codegen::MatmulEntry(launch),
                                   codegen::MatmulShape(launch),
                                   codegen::PackMatmul(launch, *left, *right, *output));
    if (!prepared.ok()) return prepared.status();
    absl::Status launched = LaunchPrepared(lowering.driver, lowering.stream, *prepared);
    if (prepared->marks()) lowering.end->told = launched.ok();
    return launched;
  }
  return ByLibrary(lowering, launch, *left, *right, *output);
}

absl::Status Matmul::ByLibrary(const Lowering& lowering, const wire::MatmulLaunch& launch,
                               CUdeviceptr left, CUdeviceptr right, CUdeviceptr output) {
  // CheckOperand has verified the dtypes; ops guarantees that all three are equal.
  const DType dtype = static_cast<DType>(launch.output().dtype());
  if (launch.left().dtype() != launch.output().dtype() ||
      launch.right().dtype() != launch.output().dtype()) {
    return absl::InvalidArgumentError("matmul operands of different dtypes");
  }
  const int64_t item = ItemSize(dtype);
  if (launch.k() == 0) {
    uint64_t bytes = static_cast<uint64_t>(launch.m()) * launch.n() * item;
    for (int64_t extent : launch.batch_extents()) bytes *= extent;
    return ToStatus(lowering.driver.cuMemsetD8Async(output, 0, bytes, lowering.stream),
                    "filling an empty product");
  }
  if (!blas_.ok()) return blas_.status();
  const MatmulPlan plan = PlanMatmul(launch, item);
  const uint64_t left_bytes = CopyBytesOf(plan.left, plan.batch_count, item);
  const uint64_t right_bytes = CopyBytesOf(plan.right, plan.batch_count, item);
  CUdeviceptr scratch = 0;
  if (left_bytes + right_bytes > 0) {
    absl::StatusOr<CUdeviceptr> reserved = lowering.scratch.Reserve(left_bytes + right_bytes);
    if (!reserved.ok()) return reserved.status();
    scratch = *reserved;
  }
  std::vector<int64_t> index(plan.loops.size(), 0);
  do {
    int64_t left_offset = 0, right_offset = 0, output_offset = 0;
    for (size_t i = 0; i < index.size(); ++i) {
      left_offset += index[i] * plan.loops[i].left_step;
      right_offset += index[i] * plan.loops[i].right_step;
      output_offset += index[i] * plan.loops[i].output_step;
    }
    absl::StatusOr<BlasMatrix> a = Place(lowering, gather_, plan.left, plan.batch_count, item,
                                         left + left_offset * item, scratch);
    if (!a.ok()) return a.status();
    absl::StatusOr<BlasMatrix> b = Place(lowering, gather_, plan.right, plan.batch_count, item,
                                         right + right_offset * item, scratch + left_bytes);
    if (!b.ok()) return b.status();
    const BlasMatrix c{output + output_offset * item, plan.n, plan.output_batch_stride, false};
    absl::Status status = (*blas_)->Multiply(lowering.stream, dtype, plan.m, plan.n, plan.k, *a, *b,
                                             c, plan.batch_count);
    if (!status.ok()) return status;
  } while (Advance(plan.loops, &index));
  return absl::OkStatus();
}

}  // namespace stride::cuda
