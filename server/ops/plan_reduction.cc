#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/collapse.h"
#include "server/ops/elementwise.h"
#include "server/ops/promotion.h"
#include "server/ops/reduce_access.h"

namespace stride::ops {
namespace {

using Code = wire::ReduceCode;

constexpr char kInput[] = "reduction.input";

struct Rule {
  const char* name;
  Code::Combine combine;
};

Rule RuleOf(v1::Reduction::Function function) {
  switch (function) {
    case v1::Reduction::FUNCTION_SUM:
      return {"sum", Code::COMBINE_ADD};
    case v1::Reduction::FUNCTION_PROD:
      return {"prod", Code::COMBINE_MULTIPLY};
    case v1::Reduction::FUNCTION_MIN:
      return {"min", Code::COMBINE_MINIMUM};
    case v1::Reduction::FUNCTION_MAX:
      return {"max", Code::COMBINE_MAXIMUM};
    case v1::Reduction::FUNCTION_MEAN:
      return {"mean", Code::COMBINE_ADD};
    case v1::Reduction::FUNCTION_ANY:
      return {"any", Code::COMBINE_LOGICAL_OR};
    case v1::Reduction::FUNCTION_ALL:
      return {"all", Code::COMBINE_LOGICAL_AND};
    case v1::Reduction::FUNCTION_ARGMIN:
      return {"argmin", Code::COMBINE_ARGMIN};
    case v1::Reduction::FUNCTION_ARGMAX:
      return {"argmax", Code::COMBINE_ARGMAX};
    case v1::Reduction::FUNCTION_NORM:
      return {"norm", Code::COMBINE_ADD};
    case v1::Reduction::FUNCTION_COUNT_NONZERO:
      return {"count_nonzero", Code::COMBINE_ADD};
    default:
      return {"", Code::COMBINE_UNSPECIFIED};
  }
}

bool IsArg(Code::Combine combine) {
  return combine == Code::COMBINE_ARGMIN || combine == Code::COMBINE_ARGMAX;
}
bool HasIdentity(Code::Combine combine) {
  return combine != Code::COMBINE_MINIMUM && combine != Code::COMBINE_MAXIMUM && !IsArg(combine);
}

// The result's type when none is asked for.
DType DefaultType(v1::Reduction::Function function, DType input) {
  bool integral = IsInteger(input) || IsBool(input);
  switch (function) {
    case v1::Reduction::FUNCTION_SUM:
    case v1::Reduction::FUNCTION_PROD:
      if (!integral) return input;
      return IsUnsigned(input) ? DType::kUInt64 : DType::kInt64;
    case v1::Reduction::FUNCTION_MEAN:
      return integral ? DType::kFloat64 : input;
    case v1::Reduction::FUNCTION_ANY:
    case v1::Reduction::FUNCTION_ALL:
      return DType::kBool;
    case v1::Reduction::FUNCTION_ARGMIN:
    case v1::Reduction::FUNCTION_ARGMAX:
    case v1::Reduction::FUNCTION_COUNT_NONZERO:
      return DType::kInt64;
    case v1::Reduction::FUNCTION_NORM:
      if (integral) return DType::kFloat64;
      if (input == DType::kComplex64) return DType::kFloat32;
      return input == DType::kComplex128 ? DType::kFloat64 : input;
    default:
      return input;
  }
}

absl::Status CheckType(v1::Reduction::Function function, const char* name, DType input,
                       DType result) {
  auto refuse = [&](const char* why) {
    return InvalidField(v1::ERROR_REASON_DATA_TYPE_MISMATCH, "reduction.data_type",
                        absl::StrCat(why, ": ", name, " of ", std::string(Name(input)), " as ",
                                     std::string(Name(result))));
  };
  switch (function) {
    case v1::Reduction::FUNCTION_ANY:
    case v1::Reduction::FUNCTION_ALL:
      return IsBool(result) ? absl::OkStatus()
                            : refuse("the result is bool; leave data_type unset");
    case v1::Reduction::FUNCTION_ARGMIN:
    case v1::Reduction::FUNCTION_ARGMAX:
    case v1::Reduction::FUNCTION_COUNT_NONZERO:
      return result == DType::kInt64 ? absl::OkStatus()
                                     : refuse("the result is int64; leave data_type unset");
    case v1::Reduction::FUNCTION_NORM:
      return IsFloat(result) ? absl::OkStatus() : refuse("a norm is a float");
    case v1::Reduction::FUNCTION_MEAN:
      if (!IsFloat(result) && !IsComplex(result))
        return refuse("a mean is a float or complex number");
      break;
    default:
      break;
  }
  // NumPy lets `dtype=` narrow a reduction only within the kind.
  return CanCastSameKind(input, result)
             ? absl::OkStatus()
             : refuse("the input cannot be cast without changing its kind");
}

// Reduced axes as given, or all.
absl::StatusOr<std::vector<bool>> ReducedAxes(const v1::Reduction& reduction, size_t rank,
                                              bool single) {
  std::vector<int32_t> axes(reduction.axes().begin(), reduction.axes().end());
  auto normal = NormalizeAxes(axes, rank, "reduction.axes");
  if (!normal.ok()) return normal.status();
  if (single && normal->size() > 1) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "reduction.axes",
                        absl::StrCat("an index is along one axis or over all; ", normal->size(),
                                     " axes were given"));
  }
  std::vector<bool> reduced(rank, normal->empty());
  for (int axis : *normal) reduced[axis] = true;
  return reduced;
}

struct Axes {
  Shape result_shape;
  Loop kept;  // strides of the input
  Loop reduced;
  int64_t reduced_count = 1;
};

Axes SplitAxes(const ArrayInfo& input, const std::vector<bool>& is_reduced, bool keep_dims) {
  Axes axes;
  axes.kept.strides.resize(1);
  axes.reduced.strides.resize(1);
  for (size_t i = 0; i < input.shape.size(); ++i) {
    Loop& loop = is_reduced[i] ? axes.reduced : axes.kept;
    loop.extents.push_back(input.shape[i]);
    loop.strides[0].push_back(input.strides[i]);
    if (is_reduced[i]) axes.reduced_count *= input.shape[i];
    if (!is_reduced[i]) axes.result_shape.push_back(input.shape[i]);
    if (is_reduced[i] && keep_dims) axes.result_shape.push_back(1);
  }
  return axes;
}

// The output's strides along the kept axes alone.
std::vector<int64_t> KeptStrides(const ArrayInfo& output, const std::vector<bool>& is_reduced,
                                 bool keep_dims) {
  std::vector<int64_t> strides;
  for (size_t i = 0, j = 0; i < is_reduced.size(); ++i) {
    if (!is_reduced[i]) strides.push_back(output.strides[j]);
    j += !is_reduced[i] || keep_dims;
  }
  return strides;
}

// The type in which values are combined.
DType AccumulatorType(v1::Reduction::Function function, DType input, DType result) {
  switch (function) {
    case v1::Reduction::FUNCTION_ARGMIN:
    case v1::Reduction::FUNCTION_ARGMAX:
      return ComputeType(input);
    default:
      return ComputeType(result);
  }
}

absl::StatusOr<Value> MapValue(ProgramBuilder& builder, v1::Reduction::Function function,
                               DType input, DType accumulator) {
  Value value = builder.Input(0, input);
  if (function == v1::Reduction::FUNCTION_ANY || function == v1::Reduction::FUNCTION_ALL) {
    return builder.Cast(value, DType::kBool);
  }
  if (function == v1::Reduction::FUNCTION_COUNT_NONZERO)
    return builder.Cast(builder.Cast(value, DType::kBool), accumulator);
  if (function != v1::Reduction::FUNCTION_NORM) return builder.Cast(value, accumulator);
  if (!IsComplex(input)) {
    Value wide = builder.Cast(value, accumulator);
    return builder.Op("multiply", {wide, wide}, accumulator);
  }
  // |z|^2 without the square root: re*re + im*im.
  DType part = input == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
  Value real = builder.Cast(builder.Op("real", {value}, part), accumulator);
  Value imag = builder.Cast(builder.Op("imag", {value}, part), accumulator);
  return builder.Op("add",
                    {builder.Op("multiply", {real, real}, accumulator),
                     builder.Op("multiply", {imag, imag}, accumulator)},
                    accumulator);
}

absl::StatusOr<Value> FinishValue(ProgramBuilder& builder, v1::Reduction::Function function,
                                  DType accumulator, int64_t count) {
  Value value = builder.Input(0, accumulator);
  if (function == v1::Reduction::FUNCTION_NORM) return builder.Op("sqrt", {value}, accumulator);
  if (function != v1::Reduction::FUNCTION_MEAN) return value;
  auto divisor = EncodeScalar(static_cast<double>(count), accumulator, kInput);
  if (!divisor.ok()) return divisor.status();
  return builder.Op("divide", {value, builder.Constant(*divisor)}, accumulator);
}

}  // namespace

absl::StatusOr<Plan> PlanReduction(const v1::Reduction& reduction, Inputs inputs,
                                   const Input& existing) {
  Rule rule = RuleOf(reduction.function());
  if (rule.combine == Code::COMBINE_UNSPECIFIED) {
    return InvalidField(
        v1::ERROR_REASON_INVALID_FIELD, "reduction.function",
        absl::StrCat("no such reduction: ", static_cast<int>(reduction.function())));
  }
  if (!inputs[0])
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, kInput, "a reduction needs an array");
  const ArrayInfo& input = *inputs[0];
  auto data_type = ReadDataType(reduction.data_type(), "reduction.data_type");
  if (!data_type.ok()) return data_type.status();
  DType dtype = data_type->value_or(DefaultType(reduction.function(), input.dtype));
  // The default type is right by construction (mean of int64 is a float, norm of complex a real).
  if (*data_type) {
    DType from = reduction.function() == v1::Reduction::FUNCTION_NORM
                     ? DefaultType(reduction.function(), input.dtype)
                     : input.dtype;
    if (auto status = CheckType(reduction.function(), rule.name, from, dtype); !status.ok())
      return status;
  }
  auto is_reduced = ReducedAxes(reduction, input.shape.size(), IsArg(rule.combine));
  if (!is_reduced.ok()) return is_reduced.status();
  Axes axes = SplitAxes(input, *is_reduced, reduction.keep_dims());
  int64_t kept_count = axes.kept.count();
  if (axes.reduced_count == 0 && kept_count != 0 && !HasIdentity(rule.combine)) {
    return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, kInput,
                        absl::StrCat("an empty array has no ", rule.name, "; its shape is ",
                                     ToString(input.shape)));
  }
  auto output = ChooseOutput(dtype, axes.result_shape, existing);
  if (!output.ok()) return output.status();

  DType accumulator = AccumulatorType(reduction.function(), input.dtype, dtype);
  ProgramBuilder map, finish;
  auto mapped = MapValue(map, reduction.function(), input.dtype, accumulator);
  if (!mapped.ok()) return mapped.status();
  DType finish_input = IsArg(rule.combine) ? DType::kInt64 : accumulator;
  auto finished = FinishValue(finish, reduction.function(), finish_input, axes.reduced_count);
  if (!finished.ok()) return finished.status();
  Value stored = finish.Cast(finish.Cast(*finished, dtype), output->dtype);

  axes.kept.strides.push_back(KeptStrides(*output, *is_reduced, reduction.keep_dims()));
  // The input decides the kept axes' order: there is more of it.
  std::swap(axes.kept.strides[0], axes.kept.strides[1]);
  Loop kept = Collapse(std::move(axes.kept), AxisOrder::kLocality, false);
  std::swap(kept.strides[0], kept.strides[1]);
  Loop reduced = Collapse(std::move(axes.reduced),
                          IsArg(rule.combine) ? AxisOrder::kKeep : AxisOrder::kLocality, false);

  Plan plan;
  plan.outputs.push_back(*output);
  auto* launch = plan.task.mutable_reduce();
  launch->mutable_kept_extents()->Assign(kept.extents.begin(), kept.extents.end());
  launch->mutable_reduced_extents()->Assign(reduced.extents.begin(), reduced.extents.end());
  std::vector<int64_t> strides = kept.strides[0];
  strides.insert(strides.end(), reduced.strides[0].begin(), reduced.strides[0].end());
  *launch->add_inputs() = MakeOperand(0, input, strides);
  *launch->mutable_output() = MakeOperand(1, *output, kept.strides[1]);
  for (const auto& scalar : map.scalars()) *launch->add_map_scalars() = scalar;
  for (const auto& scalar : finish.scalars()) *launch->add_finish_scalars() = scalar;

  Code* code = plan.code.emplace().mutable_reduce();
  *code->mutable_map() = map.Finish({*mapped});
  code->add_input_dtypes(static_cast<int>(input.dtype));
  code->set_combine(rule.combine);
  code->set_accumulator_dtype(static_cast<int>(accumulator));
  *code->mutable_finish() = finish.Finish({stored});
  code->set_output_dtype(static_cast<int>(output->dtype));
  code->set_kept_rank(static_cast<uint32_t>(kept.extents.size()));
  code->set_reduced_rank(static_cast<uint32_t>(reduced.extents.size()));
  code->add_access(ReducedAccess(*launch, 0));
  code->set_kept_contiguous(KeptContiguous(*launch));
  code->set_index_32bit(Fits32Bits(Loop{{input.num_elements()}, {}}) && ReachFits32Bits(*launch));
  plan.task.set_label(rule.name);
  plan.bytes = static_cast<double>(input.size_bytes() + output->size_bytes());
  plan.flops = static_cast<double>(input.num_elements()) * (1 + map.num_operations());
  return plan;
}

}  // namespace stride::ops
