#include "server/ops/scratch_bytes.h"

#include <algorithm>
#include <cmath>

#include "server/store/dtype.h"

namespace stride::ops {
namespace {

using Linalg = wire::LinalgLaunch;

// Small matrices of a batch are processed together, as many as fit into this.
constexpr double kBatchBytes = 32 << 20;

// Elements of scratch memory per matrix.
double LinalgElements(const Linalg& launch) {
  const double m = static_cast<double>(launch.m()), n = static_cast<double>(launch.n()),
               least = std::min(m, n), vectors = launch.values_only() ? 0 : 1;
  const double columns = vectors * (launch.full() ? m : least);
  const double rows = vectors * (launch.full() ? n : least);
  switch (launch.function()) {
    case Linalg::FUNCTION_QR:
      return m * std::max(n, columns);
    case Linalg::FUNCTION_SVD:  // xGESDD uses up to 4 k^2 elements.
      return m * n + m * columns + rows * n + (2 + 2 * vectors) * least * least;
    case Linalg::FUNCTION_EIGH:  // xSYEVD uses 2 n^2 elements, cusolverDnXsyevd 2.4 n^2.
      return n * n + (vectors > 0 ? 2.4 : 1) * n * n;
    case Linalg::FUNCTION_EIG:
      return n * n + vectors * n * n + 2 * n * n;
    case Linalg::FUNCTION_INVERSE:
      return 2 * n * n;
    case Linalg::FUNCTION_SOLVE:
      return n * n + n * static_cast<double>(launch.k());
    default:
      return m * n;
  }
}

// The library's workspace holds a line's complex numbers; real transforms copy both sides.
double FftElements(const wire::FftLaunch& launch) {
  double elements = 1;
  for (int64_t extent : launch.extents()) elements *= static_cast<double>(extent);
  for (int i = 0; i < launch.axes_size() && i < launch.lengths_size(); ++i) {
    const int axis = launch.axes(i);
    if (axis < 0 || axis >= launch.extents_size() || launch.extents(axis) == 0) continue;
    elements *= static_cast<double>(launch.lengths(i)) / static_cast<double>(launch.extents(axis));
  }
  return elements * (launch.kind() == wire::FftLaunch::KIND_COMPLEX ? 1 : 1.5);
}

double ItemBytesOf(const wire::Operand& operand) {
  return static_cast<double>(ItemSize(static_cast<DType>(operand.dtype())));
}

// Two copies of the elements, and of their indices on request. Short rows are sorted in a block's
// shared memory.
double SortBytes(const wire::RoutineLaunch& launch) {
  constexpr int64_t kShortRow = 1024;
  const wire::RoutineOperand& input = launch.operands(0);
  if (input.own_extents_size() == 0 || input.own_extents(0) <= kShortRow) return 0;
  double elements = static_cast<double>(input.own_extents(0));
  for (int64_t extent : launch.extents()) elements *= static_cast<double>(extent);
  const bool places = launch.options_size() > 1 && launch.options(1) != 0;
  return 2 * elements * (ItemBytesOf(input.operand()) + (places ? 8 : 0));
}

}  // namespace

uint64_t ScratchBytes(const wire::Task& task) {
  double bytes = 0;
  if (task.has_linalg() && task.linalg().inputs_size() > 0) {
    bytes = LinalgElements(task.linalg()) * ItemBytesOf(task.linalg().inputs(0));
    double count = 1;
    for (int64_t extent : task.linalg().batch_extents()) count *= static_cast<double>(extent);
    bytes = std::max(bytes, std::min(bytes * count, kBatchBytes));
  }
  if (task.has_fft())
    bytes = FftElements(task.fft()) *
            std::max(ItemBytesOf(task.fft().input()), ItemBytesOf(task.fft().output()));
  if (task.has_routine() && task.routine().operands_size() > 0 &&
      task.routine().routine() == wire::RoutineCode::ROUTINE_SORT)
    bytes = SortBytes(task.routine());
  // The limit is more than any device has and fits 64 bits.
  return static_cast<uint64_t>(std::min(std::ceil(bytes), 0x1p62));
}

}  // namespace stride::ops
