#include "server/ops/reduce_access.h"

#include <algorithm>
#include <cstdlib>

#include "server/store/dtype.h"

namespace stride::ops {
namespace {

constexpr int64_t kLimit32 = int64_t{1} << 30;

int64_t ItemSizeOf(const wire::Operand& operand) {
  return ItemSize(static_cast<DType>(operand.dtype()));
}

bool OperandFits(const wire::Operand& operand, const google::protobuf::RepeatedField<int64_t>& kept,
                 const google::protobuf::RepeatedField<int64_t>* reduced) {
  int64_t reach = 0;
  int axis = 0;
  auto add = [&](const google::protobuf::RepeatedField<int64_t>& extents) {
    for (int64_t extent : extents) {
      reach += std::abs(operand.strides(axis++)) * std::max<int64_t>(extent - 1, 0);
      if (reach >= kLimit32) return false;
    }
    return true;
  };
  return add(kept) && (reduced == nullptr || add(*reduced));
}

}  // namespace

bool IsArg(wire::ReduceCode::Combine combine) {
  return combine == wire::ReduceCode::COMBINE_ARGMIN || combine == wire::ReduceCode::COMBINE_ARGMAX;
}

DType FinishedType(wire::ReduceCode::Combine combine, DType accumulator) {
  switch (combine) {
    case wire::ReduceCode::COMBINE_ARGMIN:
    case wire::ReduceCode::COMBINE_ARGMAX:
      return DType::kInt64;
    case wire::ReduceCode::COMBINE_MOMENTS:
      return RealType(accumulator);
    default:
      return accumulator;
  }
}

const wire::ReduceLaunch& DecidingLaunch(const wire::ReduceLaunch& launch) {
  return launch.has_array() ? launch.array() : launch;
}

wire::Layout::Access ReducedAccess(const wire::ReduceLaunch& launch, int input) {
  const wire::Operand& operand = launch.inputs(input);
  const int first = launch.reduced_extents().empty() ? 0 : launch.kept_extents_size();
  if (std::all_of(operand.strides().begin() + first, operand.strides().end(),
                  [](int64_t s) { return s == 0; }) &&
      operand.strides_size() > 0) {
    return wire::Layout::ACCESS_BROADCAST;
  }
  if (launch.reduced_extents_size() == 0) return wire::Layout::ACCESS_CONTIGUOUS;
  bool contiguous = launch.reduced_extents_size() == 1 &&
                    operand.strides(operand.strides_size() - 1) == ItemSizeOf(operand);
  return contiguous ? wire::Layout::ACCESS_CONTIGUOUS : wire::Layout::ACCESS_STRIDED;
}

wire::Layout::Access InnerAccess(const wire::ReduceLaunch& launch, int input) {
  const int kept = launch.kept_extents_size(), reduced = launch.reduced_extents_size();
  const int axis = KeptContiguous(launch) ? kept - 1 : kept + reduced - 1;
  const wire::Operand& operand = launch.inputs(input);
  const bool none = axis < 0 || (axis == kept - 1 && !KeptContiguous(launch));
  const int64_t step = none ? 0 : operand.strides(axis);
  if (step == 0) return wire::Layout::ACCESS_BROADCAST;
  return step == ItemSizeOf(operand) ? wire::Layout::ACCESS_CONTIGUOUS
                                     : wire::Layout::ACCESS_STRIDED;
}

bool KeptContiguous(const wire::ReduceLaunch& whole) {
  const wire::ReduceLaunch& launch = DecidingLaunch(whole);
  int last = launch.kept_extents_size() - 1;
  // With fewer columns than half a warp, threads would idle that rows could use.
  if (last < 0 || launch.kept_extents(last) < 16) return false;
  bool some = false;
  for (int i = 0; i < launch.inputs_size(); ++i) {
    if (ReducedAccess(launch, i) == wire::Layout::ACCESS_CONTIGUOUS) return false;
    some |= launch.inputs(i).strides(last) == ItemSizeOf(launch.inputs(i));
  }
  return some;
}

bool ReachFits32Bits(const wire::ReduceLaunch& launch) {
  for (const wire::Operand& input : launch.inputs()) {
    if (!OperandFits(input, launch.kept_extents(), &launch.reduced_extents())) return false;
  }
  return OperandFits(launch.output(), launch.kept_extents(), nullptr);
}

}  // namespace stride::ops
