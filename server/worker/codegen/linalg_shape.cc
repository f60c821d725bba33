#include "server/worker/codegen/linalg_shape.h"

#include <algorithm>
#include <limits>

#include "server/worker/codegen/launch_abi.h"

namespace stride::codegen {
namespace {

using Launch = wire::LinalgLaunch;

DType RealPart(DType dtype) {
  if (dtype == DType::kComplex64) return DType::kFloat32;
  return dtype == DType::kComplex128 ? DType::kFloat64 : dtype;
}

DType ComplexOf(DType dtype) {
  if (dtype == DType::kFloat32) return DType::kComplex64;
  return dtype == DType::kFloat64 ? DType::kComplex128 : dtype;
}

bool IsSquare(const Launch& launch) {
  switch (launch.function()) {
    case Launch::FUNCTION_QR:
    case Launch::FUNCTION_SVD:
    case Launch::FUNCTION_LU:
      return true;
    default:
      return launch.m() == launch.n();
  }
}

bool HasGoodExtents(const Launch& launch) {
  for (int64_t extent : {launch.m(), launch.n(), launch.k()})
    if (extent < 0 || extent > std::numeric_limits<int32_t>::max()) return false;
  for (int64_t extent : launch.batch_extents())
    if (extent < 0) return false;
  return launch.batch_extents_size() + 2 <= kMaxRank;
}

std::vector<LinalgShape::Matrix> OutputsOf(const Launch& launch, DType dtype) {
  const int64_t m = launch.m(), n = launch.n(), least = std::min(m, n);
  const DType real = RealPart(dtype);
  switch (launch.function()) {
    case Launch::FUNCTION_QR: {
      const int64_t inner = launch.full() ? m : least;
      if (launch.values_only()) return {{inner, n, dtype, {}}};
      return {{m, inner, dtype, {}}, {inner, n, dtype, {}}};
    }
    case Launch::FUNCTION_SVD:
      if (launch.values_only()) return {{least, 1, real, {}}};
      return {{m, launch.full() ? m : least, dtype, {}},
              {least, 1, real, {}},
              {launch.full() ? n : least, n, dtype, {}}};
    case Launch::FUNCTION_EIGH:
      if (launch.values_only()) return {{n, 1, real, {}}};
      return {{n, 1, real, {}}, {n, n, dtype, {}}};
    case Launch::FUNCTION_EIG:
      if (launch.values_only()) return {{n, 1, ComplexOf(dtype), {}}};
      return {{n, 1, ComplexOf(dtype), {}}, {n, n, ComplexOf(dtype), {}}};
    case Launch::FUNCTION_SOLVE:
      return {{n, launch.k(), dtype, {}}};
    case Launch::FUNCTION_LU:
      return {{m, n, dtype, {}}, {least, 1, DType::kInt64, {}}};
    default:
      return {{n, n, dtype, {}}};
  }
}

template <typename Operands>
bool Fit(const Operands& operands, const std::vector<int64_t>& batch,
         std::vector<LinalgShape::Matrix>* matrices) {
  if (operands.size() != static_cast<int>(matrices->size())) return false;
  for (int i = 0; i < operands.size(); ++i) {
    LinalgShape::Matrix& matrix = (*matrices)[i];
    matrix.extents = batch;
    matrix.extents.push_back(matrix.rows);
    matrix.extents.push_back(matrix.columns);
    if (operands[i].dtype() != static_cast<int>(matrix.dtype) ||
        operands[i].strides_size() != static_cast<int>(matrix.extents.size()))
      return false;
  }
  return true;
}

// 0 also when the product overflows: no array has as many elements.
int64_t NumMatrices(const LinalgShape& shape) {
  const bool writes = std::any_of(shape.outputs.begin(), shape.outputs.end(),
                                  [](const auto& m) { return m.rows > 0 && m.columns > 0; });
  int64_t count = writes ? 1 : 0;
  for (int64_t extent : shape.batch_extents)
    if (__builtin_mul_overflow(count, extent, &count)) return 0;
  return count;
}

}  // namespace

absl::StatusOr<LinalgShape> ReadLinalg(const Launch& launch) {
  const absl::Status misfit =
      absl::InternalError("linear algebra with operands that do not fit its function");
  const bool known = launch.function() >= Launch::FUNCTION_CHOLESKY &&
                     launch.function() <= Launch::FUNCTION_EIG && launch.inputs_size() > 0;
  if (!known || !HasGoodExtents(launch) || !IsSquare(launch)) return misfit;
  const auto dtype = DTypeFromNumber(launch.inputs(0).dtype());
  if (!dtype || !(IsComplex(*dtype) || *dtype == DType::kFloat32 || *dtype == DType::kFloat64))
    return misfit;
  LinalgShape shape;
  shape.dtype = *dtype;
  shape.batch_extents = {launch.batch_extents().begin(), launch.batch_extents().end()};
  shape.inputs.push_back({launch.m(), launch.n(), *dtype, {}});
  if (launch.function() == Launch::FUNCTION_SOLVE)
    shape.inputs.push_back({launch.n(), launch.k(), *dtype, {}});
  shape.outputs = OutputsOf(launch, *dtype);
  if (!Fit(launch.inputs(), shape.batch_extents, &shape.inputs) ||
      !Fit(launch.outputs(), shape.batch_extents, &shape.outputs))
    return misfit;
  shape.num_matrices = NumMatrices(shape);
  return shape;
}

}  // namespace stride::codegen
