#include "server/ops/partial_results.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/program_builder.h"
#include "server/ops/promotion.h"
#include "server/ops/reduce_access.h"
#include "server/ops/shape.h"

namespace stride::ops {
namespace {

using Function = v1::Reduction;

// The ufuncs that have a reduction of their own.
v1::Reduction::Function FunctionOf(const v1::Reduction& reduction) {
  constexpr std::pair<const char*, v1::Reduction::Function> kNames[] = {
      {"add", Function::FUNCTION_SUM},        {"multiply", Function::FUNCTION_PROD},
      {"minimum", Function::FUNCTION_MIN},    {"maximum", Function::FUNCTION_MAX},
      {"logical_or", Function::FUNCTION_ANY}, {"logical_and", Function::FUNCTION_ALL},
  };
  if (reduction.function_name().empty()) return reduction.function();
  for (const auto& [name, function] : kNames) {
    if (reduction.function_name() == name) return function;
  }
  return Function::FUNCTION_UNSPECIFIED;
}

bool IsArg(v1::Reduction::Function function) {
  return function == Function::FUNCTION_ARGMIN || function == Function::FUNCTION_ARGMAX;
}

bool IsVariance(v1::Reduction::Function function) {
  return function == Function::FUNCTION_VAR || function == Function::FUNCTION_STD;
}

// The inputs of a variance's finish that a part stores: the squared distances, the mean's two
// terms, and how many elements take part, where not all do.
std::vector<int> MomentInputs(const v1::Reduction& reduction) {
  if (reduction.has_where() || reduction.skip_nan()) return {0, 2, 3, 1};
  return {0, 2, 3};
}

// The ufunc that combines two partial results.
const char* UfuncOf(v1::Reduction::Function function, bool skip_nan = false) {
  switch (function) {
    case Function::FUNCTION_PROD:
      return "multiply";
    case Function::FUNCTION_MIN:
      return skip_nan ? "fmin" : "minimum";
    case Function::FUNCTION_MAX:
      return skip_nan ? "fmax" : "maximum";
    case Function::FUNCTION_ANY:
      return "logical_or";
    case Function::FUNCTION_ALL:
      return "logical_and";
    default:
      return "add";
  }
}

PartialStep StepOf(const v1::Operation& operation, v1::Reduction::Function function) {
  PartialStep step{operation};
  step.operation.mutable_reduction()->set_function(function);
  step.operation.mutable_reduction()->clear_function_name();
  return step;
}

// In what it is accumulated.
void Accumulate(DType result, PartialStep* step) {
  step->operation.mutable_reduction()->set_data_type(
      static_cast<v1::DataType>(ComputeType(result)));
}

Value Number(ProgramBuilder& builder, int64_t value) {
  return builder.Constant(*EncodeScalar(Integer{value}, DType::kInt64, ""));
}

// A part's index, among its own elements, as one among the whole's.
Value WholeIndex(ProgramBuilder& builder, Value index, const PartPlace& place, bool of_all,
                 const std::vector<int64_t>& shape, int axis) {
  auto op = [&](const char* name, Value a, int64_t b) {
    return builder.Op(name, {a, Number(builder, b)}, DType::kInt64);
  };
  int64_t inner = 1, outer = 1;
  if (of_all) {
    for (size_t i = static_cast<size_t>(axis) + 1; i < shape.size(); ++i) inner *= shape[i];
    for (int i = 0; i < axis; ++i) outer *= shape[i];
  }
  if (outer == 1) return op("add", index, place.begin * inner);
  const int64_t row = place.length * inner;
  const Value before = op("multiply", op("floor_divide", index, row), shape[axis] * inner);
  const Value within = op("add", op("remainder", index, row), place.begin * inner);
  return builder.Op("add", {before, within}, DType::kInt64);
}

// The index of the first least (or greatest) value; NaN wins.
Value FirstWinner(ProgramBuilder& builder, bool least, absl::Span<const Value> indices,
                  absl::Span<const Value> values) {
  auto both = [&](Value a, Value b) { return builder.Op("logical_and", {a, b}, DType::kBool); };
  auto either = [&](Value a, Value b) { return builder.Op("logical_or", {a, b}, DType::kBool); };
  auto is_nan = [&](Value a) { return builder.Op("isnan", {a}, DType::kBool); };
  auto negated = [&](Value a) { return builder.Op("logical_not", {a}, DType::kBool); };
  Value index = indices[0], value = values[0];
  for (size_t i = 1; i < indices.size(); ++i) {
    const Value other = values[i];
    const Value earlier = builder.Op("less", {indices[i], index}, DType::kBool);
    const Value beats = builder.Op(least ? "less" : "greater", {other, value}, DType::kBool);
    const Value ties = builder.Op("equal", {other, value}, DType::kBool);
    const Value wins = either(either(both(is_nan(other), either(negated(is_nan(value)), earlier)),
                                     both(negated(is_nan(value)), beats)),
                              both(ties, earlier));
    index = builder.Op("where", {wins, indices[i], index}, DType::kInt64);
    value = builder.Op("where", {wins, other, value}, value.dtype);
  }
  return index;
}

}  // namespace

absl::StatusOr<PartialResults> SplitReduction(const v1::Operation& operation, DType result) {
  PartialResults results;
  results.operation = operation;
  results.result = result;
  if (operation.has_matmul()) {
    results.steps.push_back({operation});
    results.first_steps = results.steps;
    return results;
  }
  const v1::Reduction& reduction = operation.reduction();
  const v1::Reduction::Function function = FunctionOf(reduction);
  if (function == Function::FUNCTION_UNSPECIFIED) {
    return NotImplemented(
        absl::StrCat("reduction by ", reduction.function_name(), " along a sharded axis"),
        absl::StrCat("not implemented along the axis that is split: reduction.function_name ",
                     reduction.function_name(), "; Copy the array to one device first"));
  }
  // A part with nothing but NaN has no index and no count that the others could go by.
  if (reduction.skip_nan() && (function == Function::FUNCTION_MEAN || IsArg(function))) {
    return NotImplemented("reduction.skip_nan of means and indices along a sharded axis",
                          "not implemented along the axis that is split: reduction.skip_nan of "
                          "MEAN, ARGMIN and ARGMAX; Copy the array to one device first");
  }
  results.operation.mutable_reduction()->set_function(function);
  results.operation.mutable_reduction()->clear_function_name();
  PartialStep step = StepOf(operation, function);
  switch (function) {
    case Function::FUNCTION_SUM:
    case Function::FUNCTION_PROD:
      Accumulate(result, &step);
      break;
    case Function::FUNCTION_NORM:
      Accumulate(result, &step);
      step.accumulated = 0;
      break;
    case Function::FUNCTION_VAR:
    case Function::FUNCTION_STD:
      Accumulate(result, &step);
      for (int input : MomentInputs(reduction)) {
        step.accumulated = input;
        results.steps.push_back(step);
      }
      results.first_steps = results.steps;
      return results;
    case Function::FUNCTION_MEAN:
      step = StepOf(operation, Function::FUNCTION_SUM);
      Accumulate(result, &step);
      break;
    default:
      break;
  }
  results.first_steps.push_back(step);
  // An initial value takes part once; that more of them change nothing is so of MIN and MAX alone.
  if (function == Function::FUNCTION_SUM || function == Function::FUNCTION_PROD)
    step.operation.mutable_reduction()->clear_initial();
  results.steps.push_back(step);
  if (function == Function::FUNCTION_MEAN && reduction.has_where()) {
    PartialStep count = StepOf(operation, Function::FUNCTION_COUNT_NONZERO);
    *count.operation.mutable_reduction()->mutable_input() = reduction.where();
    count.operation.mutable_reduction()->clear_where();
    count.operation.mutable_reduction()->clear_data_type();
    count.of_mask = true;
    results.steps.push_back(count);
    results.first_steps.push_back(count);
  }
  if (IsArg(function)) {
    PartialStep value =
        StepOf(operation, function == Function::FUNCTION_ARGMIN ? Function::FUNCTION_MIN
                                                                : Function::FUNCTION_MAX);
    value.operation.mutable_reduction()->clear_data_type();
    results.steps.push_back(value);
    results.first_steps.push_back(value);
  }
  return results;
}

Plan WithoutFinish(Plan plan, int input) {
  wire::ReduceCode* code = plan.code->mutable_reduce();
  wire::ReduceLaunch* launch = plan.task.mutable_reduce();
  const auto accumulator = static_cast<DType>(code->accumulator_dtype());
  const DType types[kMaxFinishInputs] = {FinishedType(code->combine(), accumulator), DType::kInt64,
                                         accumulator, accumulator};
  const DType dtype = types[input];
  ProgramBuilder same;
  Value value;
  // Inputs have the numbers in whose order they are declared.
  for (int number = 0; number <= input; ++number)
    value = same.Input(static_cast<uint32_t>(number), types[number]);
  *code->mutable_finish() = same.Finish({value});
  launch->clear_finish_scalars();
  if (plan.outputs[0].dtype == dtype) return plan;
  const int64_t before = ItemSize(plan.outputs[0].dtype);
  for (int64_t& stride : *launch->mutable_output()->mutable_strides())
    stride = stride / before * ItemSize(dtype);
  launch->mutable_output()->set_dtype(static_cast<int32_t>(dtype));
  code->set_output_dtype(static_cast<int32_t>(dtype));
  plan.outputs[0] = Contiguous(dtype, plan.outputs[0].shape);
  return plan;
}

namespace {

// Number, mean and squared distances of the elements of some parts, as device/moments.h combines
// them.
struct Moments {
  Value squares, pivot, offset;
  Value count;  // float64
};

Value Scaled(ProgramBuilder& builder, Value value, Value factor) {
  return builder.Op("multiply", {value, builder.Cast(factor, value.dtype)}, value.dtype);
}

Value SquaredSize(ProgramBuilder& builder, Value value) {
  const DType real = RealType(value.dtype);
  if (real == value.dtype) return builder.Op("multiply", {value, value}, real);
  const Value re = builder.Op("real", {value}, real), im = builder.Op("imag", {value}, real);
  return builder.Op(
      "add", {builder.Op("multiply", {re, re}, real), builder.Op("multiply", {im, im}, real)},
      real);
}

// Parts without an element, where `counted`, change nothing.
Moments CombineMoments(ProgramBuilder& builder, const Moments& a, const Moments& b, bool counted) {
  const DType dtype = a.pivot.dtype, real = a.squares.dtype, wide = DType::kFloat64;
  const auto op = [&](const char* name, Value left, Value right) {
    return builder.Op(name, {left, right}, left.dtype);
  };
  Moments both;
  both.count = op("add", a.count, b.count);
  Value share = op("divide", b.count, both.count);
  both.pivot = a.pivot;
  if (counted) {
    const Value none = builder.Constant(*EncodeScalar(0.0, wide, ""));
    share = builder.Op("where", {builder.Cast(both.count, DType::kBool), share, none}, wide);
    both.pivot =
        builder.Op("where", {builder.Cast(a.count, DType::kBool), a.pivot, b.pivot}, dtype);
  }
  const Value distance =
      op("add", op("subtract", b.pivot, both.pivot), op("subtract", b.offset, a.offset));
  both.offset = op("add", a.offset, Scaled(builder, distance, builder.Cast(share, real)));
  const Value weight = builder.Cast(op("multiply", a.count, share), real);
  both.squares = op("add", op("add", a.squares, b.squares),
                    op("multiply", SquaredSize(builder, distance), weight));
  return both;
}

// `values`: of each step of MomentInputs, by part. `counts`: elements of the parts.
Value CombineVariance(ProgramBuilder& builder, const v1::Reduction& reduction,
                      const std::vector<std::vector<Value>>& values,
                      const std::vector<double>& counts) {
  const DType wide = DType::kFloat64, real = values[0][0].dtype;
  const auto number = [&](double value, DType dtype) {
    return builder.Constant(*EncodeScalar(value, dtype, "reduction.correction"));
  };
  const bool counted = values.size() == 4;
  const auto moments = [&](size_t part) {
    return Moments{values[0][part], values[1][part], values[2][part],
                   counted ? builder.Cast(values[3][part], wide) : number(counts[part], wide)};
  };
  Moments all = moments(0);
  for (size_t part = 1; part < values[0].size(); ++part)
    all = CombineMoments(builder, all, moments(part), counted);
  const Value left =
      builder.Op("maximum",
                 {builder.Op("subtract", {all.count, number(reduction.correction(), wide)}, wide),
                  number(0, wide)},
                 wide);
  Value result = builder.Op("divide", {all.squares, builder.Cast(left, real)}, real);
  if (reduction.skip_nan()) {
    const Value nan = number(std::numeric_limits<double>::quiet_NaN(), real);
    result = builder.Op("where", {builder.Cast(left, DType::kBool), result, nan}, real);
  }
  const bool root = reduction.function() == Function::FUNCTION_STD;
  return root ? builder.Op("sqrt", {result}, real) : result;
}

}  // namespace

absl::StatusOr<Plan> PlanCombine(const PartialResults& results, absl::Span<const Input> partials,
                                 absl::Span<const PartPlace> places,
                                 const std::vector<int64_t>& input_shape, int axis,
                                 const ArrayInfo& output) {
  const v1::Operation& operation = results.operation;
  const v1::Reduction::Function function =
      operation.has_matmul() ? Function::FUNCTION_SUM : operation.reduction().function();
  const size_t num_steps = results.steps.size();
  ProgramBuilder builder;
  std::vector<std::vector<Value>> values(num_steps);
  for (size_t k = 0; k < partials.size(); ++k) {
    const DType dtype = partials[k]->dtype;
    const Value value = builder.Input(static_cast<uint32_t>(k), dtype);
    values[k % num_steps].push_back(builder.Cast(value, ComputeType(dtype)));
  }
  auto fold = [&](const std::vector<Value>& all, const char* name) {
    Value whole = all[0];
    for (size_t i = 1; i < all.size(); ++i) whole = builder.Op(name, {whole, all[i]}, whole.dtype);
    return whole;
  };
  // Elements that make one of the result.
  int64_t made = 1, all = 1;
  for (int64_t extent : output.shape) made *= extent;
  for (int64_t extent : input_shape) all *= extent;
  const int64_t reduced = made == 0 ? 0 : all / made;
  Value whole;
  if (IsVariance(function)) {
    std::vector<double> counts;
    for (const PartPlace& place : places) {
      const int64_t length = input_shape[static_cast<size_t>(axis)];
      counts.push_back(static_cast<double>(length == 0 ? 0 : reduced / length * place.length));
    }
    whole = CombineVariance(builder, operation.reduction(), values, counts);
  } else if (IsArg(function)) {
    const bool of_all = operation.reduction().axes().empty() && input_shape.size() > 1;
    std::vector<Value> indices;
    for (size_t p = 0; p < places.size(); ++p) {
      indices.push_back(WholeIndex(builder, values[0][p], places[p], of_all, input_shape, axis));
    }
    whole = FirstWinner(builder, function == Function::FUNCTION_ARGMIN, indices, values[1]);
  } else {
    whole = fold(values[0], UfuncOf(function, operation.reduction().skip_nan()));
  }
  if (function == Function::FUNCTION_NORM) whole = builder.Op("sqrt", {whole}, whole.dtype);
  if (function == Function::FUNCTION_MEAN) {
    Value count;
    if (num_steps == 2) {
      count = builder.Cast(fold(values[1], "add"), whole.dtype);
    } else {
      auto divisor = EncodeScalar(static_cast<double>(reduced), whole.dtype, "reduction.input");
      if (!divisor.ok()) return divisor.status();
      count = builder.Constant(*divisor);
    }
    whole = builder.Op("divide", {whole, count}, whole.dtype);
  }
  // As the whole does it: to the result's type, then to the existing output's.
  whole = builder.Cast(whole, results.result);
  return PlanLoop(builder, whole, partials, output, "outputs[0]");
}

}  // namespace stride::ops
