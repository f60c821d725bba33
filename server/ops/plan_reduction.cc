#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/binary_function.h"
#include "server/ops/built_in_reduction.h"
#include "server/ops/elementwise.h"
#include "server/ops/fold_plan.h"
#include "server/ops/promotion.h"
#include "server/ops/reduce_access.h"
#include "server/ops/reduce_plan.h"

namespace stride::ops {
namespace {

using Code = wire::ReduceCode;

constexpr char kInput[] = "reduction.input";
constexpr char kFunctionName[] = "reduction.function_name";
constexpr char kInitial[] = "reduction.initial";
constexpr char kWhere[] = "reduction.where";
constexpr char kSkipNan[] = "reduction.skip_nan";
constexpr char kElements[] = "reduction.expression";

// A mask may leave nothing, which has to have a value.
absl::Status CheckMask(const ReductionExtras& extras, bool has_identity, std::string_view name) {
  if (!extras.mask || extras.initial || has_identity) return absl::OkStatus();
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, kWhere,
                      absl::StrCat("the function has no identity, so that the elements that take "
                                   "part may be none; give `initial`: ",
                                   std::string(name)));
}

absl::StatusOr<wire::ScalarValue> InitialOf(const WeakScalar& initial, DType dtype) {
  if (!IsBool(dtype)) return EncodeScalar(initial, dtype, kInitial);
  // Its truth.
  const bool truth = std::visit(
      [](const auto& value) { return value != std::decay_t<decltype(value)>(0); }, initial);
  return EncodeScalar(Integer{truth}, dtype, kInitial);
}

// The mask becomes the last input, and the elements that take part are counted.
std::optional<Value> AddMask(const ReductionExtras& extras, ReduceSpec* spec) {
  if (!extras.mask) return std::nullopt;
  const auto slot = static_cast<uint32_t>(spec->inputs.size());
  spec->inputs.push_back(*extras.mask);
  spec->takes_part = spec->map.Input(slot, DType::kBool);
  return spec->finish.Input(1, DType::kInt64);
}

// Whether the element is NaN.
Value IsNan(ProgramBuilder& map, Value element) {
  return map.Op("isnan", {map.Cast(element, ComputeType(element.dtype))}, DType::kBool);
}

// NaN becomes what changes nothing.
absl::StatusOr<Value> ReplaceNan(ProgramBuilder& map, Value mapped, Value element,
                                 double identity) {
  auto encoded = EncodeScalar(identity, mapped.dtype, kSkipNan);
  if (!encoded.ok()) return encoded.status();
  return map.Op("where", {IsNan(map, element), map.Constant(*encoded), mapped}, mapped.dtype);
}

// NaN take no part. Returns how many elements do, but where these are sought by their index: there
// an index below zero says that there is none.
std::optional<Value> LeaveNanOut(Value element, bool by_index, ReduceSpec* spec) {
  const Value number = spec->map.Op("logical_not", {IsNan(spec->map, element)}, DType::kBool);
  spec->takes_part = spec->takes_part
                         ? spec->map.Op("logical_and", {*spec->takes_part, number}, DType::kBool)
                         : number;
  if (by_index) return std::nullopt;
  return spec->finish.Input(1, DType::kInt64);
}

// The least or greatest of no element.
absl::StatusOr<Value> NanOfNothing(ProgramBuilder& finish, Value value, Value count) {
  auto nan = EncodeScalar(std::numeric_limits<double>::quiet_NaN(), value.dtype, kSkipNan);
  if (!nan.ok()) return nan.status();
  return finish.Op("where", {finish.Cast(count, DType::kBool), value, finish.Constant(*nan)},
                   value.dtype);
}

// The elements' result, `value`, combined with the initial value, or that alone without elements.
template <typename Combine>
absl::StatusOr<Value> WithInitial(const ReductionExtras& extras, ProgramBuilder& finish,
                                  Value value, std::optional<Value> count, int64_t reduced_count,
                                  const Combine& combine) {
  if (!extras.initial) return value;
  auto encoded = InitialOf(*extras.initial, value.dtype);
  if (!encoded.ok()) return encoded.status();
  const Value initial = finish.Constant(*encoded);
  if (reduced_count == 0) return initial;
  absl::StatusOr<Value> both = combine(initial, value);
  if (!both.ok() || !count) return both;
  return finish.Op("where", {finish.Cast(*count, DType::kBool), *both, initial}, value.dtype);
}

// A sum begins with +0.0. Elements that are counted are combined with each other alone.
absl::StatusOr<Value> WithPositiveZero(ProgramBuilder& finish, Value value) {
  auto zero = EncodeScalar(0.0, value.dtype, kInput);
  if (!zero.ok()) return zero.status();
  return finish.Op("add", {value, finish.Constant(*zero)}, value.dtype);
}

// Whether a sum of negative zeros from this initial value is one as well.
bool IsNegativeZero(const WeakScalar& initial) {
  auto is_negative_zero = [](double one) { return one == 0 && std::signbit(one); };
  if (const auto* real = std::get_if<double>(&initial)) return is_negative_zero(*real);
  const auto* number = std::get_if<std::complex<double>>(&initial);
  return number && (is_negative_zero(number->real()) || is_negative_zero(number->imag()));
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

// Inputs in the one shape to which they broadcast; the mask among them comes last.
absl::StatusOr<std::vector<ArrayInfo>> ReadInputs(Inputs inputs, bool masked) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_mask = masked && i + 1 == inputs.size();
    if (!inputs[i]) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD,
                          is_mask  ? std::string(kWhere)
                          : i == 0 ? std::string(kInput)
                                   : absl::StrCat("reduction.more_inputs[", i - 1, "]"),
                          "a reduction needs an array");
    }
    if (is_mask && !IsBool(inputs[i]->dtype)) {
      return InvalidField(v1::ERROR_REASON_DATA_TYPE_MISMATCH, kWhere,
                          absl::StrCat("the mask is an array of bool, not of ",
                                       std::string(Name(inputs[i]->dtype))));
    }
    shapes.push_back(inputs[i]->shape);
  }
  auto shape =
      BroadcastShapes(shapes, masked && shapes.size() == 2 ? kWhere : "reduction.more_inputs");
  if (!shape.ok()) return shape.status();
  std::vector<ArrayInfo> arrays;
  for (const Input& input : inputs) arrays.push_back(BroadcastTo(*input, *shape));
  return arrays;
}

absl::Status NothingToReduce(const ArrayInfo& input, std::string_view name) {
  return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, kInput,
                      absl::StrCat("an empty array has no ", std::string(name), "; its shape is ",
                                   ToString(input.shape)));
}

// The elements to reduce: those of an array, or computed ones.
struct Reduced {
  ArrayInfo array;               // for computed elements: the array that they would make
  std::optional<Value> element;  // a value of `spec.map`
  ReduceSpec spec;               // with the inputs
};

Reduced OfArray(const ArrayInfo& array) {
  Reduced reduced{array, std::nullopt, {}};
  reduced.spec.inputs = {array};
  return reduced;
}

absl::StatusOr<Reduced> OfElements(ExpressionElements elements, Inputs inputs) {
  const std::vector<uint32_t> slots = elements.program.slots();
  if (slots.empty())
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, kElements, "a reduction needs an array");
  Reduced reduced{Contiguous(elements.value.dtype, elements.shape), elements.value, {}};
  for (uint32_t slot : slots)
    reduced.spec.inputs.push_back(BroadcastTo(*inputs[slot], elements.shape));
  reduced.spec.computed = {reduced.array, slots, static_cast<uint32_t>(inputs.size())};
  reduced.spec.map = std::move(elements.program);
  return reduced;
}

absl::StatusOr<Plan> PlanBuiltIn(const v1::Reduction& reduction, const BuiltInReduction& rule,
                                 Reduced reduced, const ReductionExtras& extras,
                                 std::optional<DType> data_type, const Input& existing) {
  const ArrayInfo& input = reduced.array;
  const DType dtype = data_type.value_or(rule.DefaultType(input.dtype));
  // The default type is right by construction (mean of int64 is a float, norm of complex a real).
  if (data_type) {
    const bool is_real = rule.function == v1::Reduction::FUNCTION_NORM || rule.is_variance();
    const DType from = is_real ? rule.DefaultType(input.dtype) : input.dtype;
    if (auto status = rule.CheckType(from, dtype); !status.ok()) return status;
  }
  auto is_reduced = ReducedAxes(reduction, input.shape.size(), IsArg(rule.combine));
  if (!is_reduced.ok()) return is_reduced.status();
  ReducedShape shape = ReduceShapeOf(input.shape, *is_reduced, reduction.keep_dims());
  const bool has_identity = rule.has_identity();
  const bool skip_nan = extras.skip_nan && (IsFloat(input.dtype) || IsComplex(input.dtype));
  if (shape.reduced_count == 0 && shape.kept_count != 0 && !has_identity && !extras.initial)
    return NothingToReduce(input, rule.name);
  if (auto s = CheckMask(extras, has_identity || skip_nan, rule.name); !s.ok()) return s;
  auto output = ChooseOutput(dtype, shape.result, existing);
  if (!output.ok()) return output.status();

  ReduceSpec& spec = reduced.spec;
  spec.accumulator = rule.AccumulatorType(input.dtype, dtype);
  const Value element = reduced.element ? *reduced.element : spec.map.Input(0, input.dtype);
  auto mapped = rule.MapValue(spec.map, element, spec.accumulator);
  if (!mapped.ok()) return mapped.status();
  spec.mapped = *mapped;
  // A reduction with an identity needs no count.
  const bool replaces_nan = skip_nan && has_identity &&
                            rule.function != v1::Reduction::FUNCTION_MEAN && !rule.is_variance();
  if (replaces_nan) {
    mapped =
        ReplaceNan(spec.map, spec.mapped, element, rule.combine == Code::COMBINE_MULTIPLY ? 1 : 0);
    if (!mapped.ok()) return mapped.status();
    spec.mapped = *mapped;
  }
  const DType finish_input = FinishedType(rule.combine, spec.accumulator);
  Value elements = spec.finish.Input(0, finish_input);
  std::optional<Value> count = AddMask(extras, &spec);
  if (skip_nan && !replaces_nan) count = LeaveNanOut(element, IsArg(rule.combine), &spec);
  if (rule.combine == Code::COMBINE_ADD && (IsFloat(finish_input) || IsComplex(finish_input))) {
    if (spec.takes_part && !extras.initial) {
      auto positive = WithPositiveZero(spec.finish, elements);
      if (!positive.ok()) return positive.status();
      elements = *positive;
    } else if (!spec.takes_part && extras.initial && IsNegativeZero(*extras.initial)) {
      // All are counted, since the sum of none that the elements else begin with is +0.0.
      auto all = EncodeScalar(Integer{1}, DType::kBool, kInitial);
      if (!all.ok()) return all.status();
      spec.takes_part = spec.map.Constant(*all);
    }
  }
  auto whole = WithInitial(extras, spec.finish, elements, count, shape.reduced_count,
                           [&](Value a, Value b) -> absl::StatusOr<Value> {
                             return spec.finish.Op(rule.ufunc, {a, b}, a.dtype);
                           });
  if (skip_nan && !has_identity && count && !extras.initial && whole.ok())
    whole = NanOfNothing(spec.finish, *whole, *count);
  if (!whole.ok()) return whole.status();
  auto finished = rule.FinishValue(spec.finish, *whole, count, shape.reduced_count, extras);
  if (!finished.ok()) return finished.status();
  spec.finished = spec.finish.Cast(*finished, dtype);
  spec.is_reduced = *std::move(is_reduced);
  spec.keep_dims = reduction.keep_dims();
  spec.combine = rule.combine;
  spec.output = *std::move(output);
  if (spec.computed) {
    auto status = CheckProgramSize(spec.map, 1, kElements, spec.finish.scalars().size());
    if (!status.ok()) return status;
  }
  return MakeReducePlan(std::move(spec));
}

// By a ufunc of two inputs.
absl::StatusOr<Plan> PlanByUfunc(const v1::Reduction& reduction, const ArrayInfo& input,
                                 const ReductionExtras& extras, std::optional<DType> data_type,
                                 const Input& existing, const FunctionTable* functions) {
  auto function = FindBinaryFunction({.name = reduction.function_name(),
                                      .input = input.dtype,
                                      .data_type = data_type,
                                      .field = kFunctionName,
                                      .input_field = kInput},
                                     functions);
  if (!function.ok()) return function.status();
  auto is_reduced = ReducedAxes(reduction, input.shape.size(), false);
  if (!is_reduced.ok()) return is_reduced.status();
  ReducedShape shape = ReduceShapeOf(input.shape, *is_reduced, reduction.keep_dims());
  const bool has_identity = function->identity.has_value();
  if (shape.reduced_count == 0 && shape.kept_count != 0 && !has_identity && !extras.initial)
    return NothingToReduce(input, function->name);
  if (auto s = CheckMask(extras, has_identity, function->name); !s.ok()) return s;
  auto output = ChooseOutput(function->dtype, shape.result, existing);
  if (!output.ok()) return output.status();
  if (!function->associative) {
    FoldRequest fold{*function, input, extras.mask, {}, *is_reduced, reduction.keep_dims(),
                     *output};
    if (extras.initial) {
      auto initial = InitialOf(*extras.initial, function->accumulator);
      if (!initial.ok()) return initial.status();
      fold.initial = *initial;
    }
    return PlanFold(fold);
  }

  ReduceSpec spec;
  spec.accumulator = function->accumulator;
  spec.mapped = spec.map.Cast(spec.map.Cast(spec.map.Input(0, input.dtype), function->dtype),
                              spec.accumulator);
  const Value elements = spec.finish.Input(0, spec.accumulator);
  spec.inputs = {input};
  const std::optional<Value> count = AddMask(extras, &spec);
  auto whole = WithInitial(
      extras, spec.finish, elements, count, shape.reduced_count,
      [&](Value a, Value b) { return CombineValues(spec.finish, *function, a, b, kFunctionName); });
  if (!whole.ok()) return whole.status();
  spec.finished = spec.finish.Cast(*whole, function->dtype);
  spec.is_reduced = *std::move(is_reduced);
  spec.keep_dims = reduction.keep_dims();
  spec.combine = Code::COMBINE_PROGRAM;
  spec.combine_program = std::move(function->combine);
  spec.identity = std::move(function->identity);
  spec.output = *std::move(output);
  return MakeReducePlan(std::move(spec));
}

// By a client's map, combine and finish.
absl::StatusOr<Plan> PlanOwn(const v1::Reduction& reduction, const ClientFunction& own,
                             const std::vector<ArrayInfo>& inputs, const ReductionExtras& extras,
                             std::optional<DType> data_type, const Input& existing) {
  std::vector<ArgumentType> types;
  for (const ArrayInfo& input : inputs) types.emplace_back(input.dtype);
  auto loop = ChooseLoop(own, types, data_type, kInput, Casting::kSameKind);
  if (!loop.ok()) return loop.status();
  const DType between = (*loop)->accumulator, result = (*loop)->outputs[0];
  auto is_reduced = ReducedAxes(reduction, inputs[0].shape.size(), false);
  if (!is_reduced.ok()) return is_reduced.status();
  ReducedShape shape = ReduceShapeOf(inputs[0].shape, *is_reduced, reduction.keep_dims());
  const bool has_identity = own.identity.has_value();
  if (shape.reduced_count == 0 && shape.kept_count != 0 && !has_identity && !extras.initial)
    return NothingToReduce(inputs[0], own.id);
  if (auto s = CheckMask(extras, has_identity, own.id); !s.ok()) return s;
  auto output = ChooseOutput(result, shape.result, existing);
  if (!output.ok()) return output.status();

  ReduceSpec spec;
  spec.accumulator = ComputeType(between);
  std::vector<Argument> elements;
  for (size_t k = 0; k < inputs.size(); ++k) {
    elements.emplace_back(spec.map.Cast(spec.map.Input(static_cast<uint32_t>(k), inputs[k].dtype),
                                        (*loop)->inputs[k]));
  }
  if (own.map) {
    auto mapped = CallBody(spec.map, *own.map, elements, between, kFunctionName);
    if (!mapped.ok()) return mapped.status();
    spec.mapped = *mapped;
  } else {
    spec.mapped =
        spec.map.Cast(spec.map.Cast(std::get<Value>(elements[0]), between), spec.accumulator);
  }
  ProgramBuilder combine;
  combine.MakeConstantsLiteral();
  const Value left = combine.Cast(combine.Input(0, spec.accumulator), between);
  const Value right = combine.Cast(combine.Input(1, spec.accumulator), between);
  auto combined = CallBody(combine, own.combine, {left, right}, between, kFunctionName);
  if (!combined.ok()) return combined.status();
  spec.combine_program = combine.Finish({*combined});
  const Value value = spec.finish.Input(0, spec.accumulator);
  spec.inputs = inputs;
  const std::optional<Value> count = AddMask(extras, &spec);
  auto with_initial =
      WithInitial(extras, spec.finish, value, count, shape.reduced_count, [&](Value a, Value b) {
        return CallBody(spec.finish, own.combine,
                        {spec.finish.Cast(a, between), spec.finish.Cast(b, between)}, between,
                        kFunctionName);
      });
  if (!with_initial.ok()) return with_initial.status();
  const Value whole = spec.finish.Cast(*with_initial, between);
  if (own.finish) {
    auto finished = CallBody(spec.finish, *own.finish, {whole}, result, kFunctionName);
    if (!finished.ok()) return finished.status();
    spec.finished = spec.finish.Cast(*finished, result);
  } else {
    spec.finished = spec.finish.Cast(whole, result);
  }
  if (own.identity) {
    auto identity = EncodeScalar(*own.identity, spec.accumulator, kFunctionName);
    if (!identity.ok()) return identity.status();
    spec.identity = *identity;
  }
  spec.is_reduced = *std::move(is_reduced);
  spec.keep_dims = reduction.keep_dims();
  spec.combine = Code::COMBINE_PROGRAM;
  spec.output = *std::move(output);
  return MakeReducePlan(std::move(spec));
}

absl::Status CheckExtras(const v1::Reduction& reduction) {
  const v1::Reduction::Function function = reduction.function();
  const bool is_index =
      function == v1::Reduction::FUNCTION_ARGMIN || function == v1::Reduction::FUNCTION_ARGMAX;
  const bool starts =
      function == v1::Reduction::FUNCTION_UNSPECIFIED || function == v1::Reduction::FUNCTION_SUM ||
      function == v1::Reduction::FUNCTION_PROD || function == v1::Reduction::FUNCTION_MIN ||
      function == v1::Reduction::FUNCTION_MAX;
  if (reduction.has_initial() && !starts)
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, kInitial,
                        "this reduction takes no initial value");
  const bool by_elements = function == v1::Reduction::FUNCTION_ANY ||
                           function == v1::Reduction::FUNCTION_ALL ||
                           function == v1::Reduction::FUNCTION_COUNT_NONZERO;
  const BuiltInReduction* rule = FindBuiltInReduction(function);
  if (reduction.correction() != 0 && (rule == nullptr || !rule->is_variance()))
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "reduction.correction",
                        "only a variance and a standard deviation take a correction");
  if (reduction.skip_nan() && (by_elements || !reduction.function_name().empty()))
    return InvalidField(
        v1::ERROR_REASON_INVALID_FIELD, kSkipNan,
        "NaN are left out of sums, products, means, norms, variances and extremes alone");
  if (reduction.has_where() && is_index)
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, kWhere,
                        "an index is of all elements; this reduction takes no mask");
  return absl::OkStatus();
}

// Takes the mask from the arrays.
absl::StatusOr<ReductionExtras> ReadExtras(const v1::Reduction& reduction,
                                           std::vector<ArrayInfo>* arrays) {
  if (auto s = CheckExtras(reduction); !s.ok()) return s;
  ReductionExtras extras;
  extras.skip_nan = reduction.skip_nan();
  extras.correction = reduction.correction();
  if (reduction.has_initial()) {
    auto initial = ReadScalar(reduction.initial(), kInitial);
    if (!initial.ok()) return initial.status();
    extras.initial = initial->value;
  }
  if (reduction.has_where()) {
    extras.mask = arrays->back();
    arrays->pop_back();
  }
  return extras;
}

absl::StatusOr<Plan> PlanOfExpression(const v1::Reduction& reduction, Inputs inputs,
                                      const Input& existing, const FunctionTable* functions) {
  if (!TakesElements(reduction) || reduction.has_input()) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, kElements,
                        "an expression stands in place of `input`, with `function` and without "
                        "`where` and `more_inputs`");
  }
  auto elements = ReadElements(reduction.expression(), inputs, functions, kElements);
  if (!elements.ok()) return elements.status();
  return PlanReductionOf(reduction, *std::move(elements), inputs, existing);
}

}  // namespace

bool TakesElements(const v1::Reduction& reduction) {
  return reduction.function_name().empty() && !reduction.has_where() &&
         reduction.more_inputs_size() == 0 && FindBuiltInReduction(reduction.function()) != nullptr;
}

absl::StatusOr<Plan> PlanReductionOf(const v1::Reduction& reduction, ExpressionElements elements,
                                     Inputs inputs, const Input& existing) {
  std::vector<ArrayInfo> no_mask;
  auto extras = ReadExtras(reduction, &no_mask);
  if (!extras.ok()) return extras.status();
  auto data_type = ReadDataType(reduction.data_type(), "reduction.data_type");
  if (!data_type.ok()) return data_type.status();
  auto reduced = OfElements(std::move(elements), inputs);
  if (!reduced.ok()) return reduced.status();
  return PlanBuiltIn(reduction, *FindBuiltInReduction(reduction.function()), *std::move(reduced),
                     *extras, *data_type, existing);
}

absl::StatusOr<Plan> PlanReduction(const v1::Reduction& reduction, Inputs inputs,
                                   const Input& existing, const FunctionTable* functions) {
  if (reduction.has_expression()) return PlanOfExpression(reduction, inputs, existing, functions);
  const std::string& name = reduction.function_name();
  const v1::Reduction::Function function = reduction.function();
  const BuiltInReduction* rule =
      name.empty() ? FindBuiltInReduction(function) : FindBuiltInReduction(name);
  if (!name.empty() && function != v1::Reduction::FUNCTION_UNSPECIFIED) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, kFunctionName,
                        "either this or `function`, not both");
  }
  if (name.empty() && rule == nullptr) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "reduction.function",
                        absl::StrCat("no such reduction: ", static_cast<int>(function)));
  }
  auto arrays = ReadInputs(inputs, reduction.has_where());
  if (!arrays.ok()) return arrays.status();
  auto extras = ReadExtras(reduction, &*arrays);
  if (!extras.ok()) return extras.status();
  auto data_type = ReadDataType(reduction.data_type(), "reduction.data_type");
  if (!data_type.ok()) return data_type.status();
  const ClientFunction* own =
      !name.empty() && functions != nullptr ? functions->Find(name) : nullptr;
  if (own != nullptr && own->kind == ClientFunction::Kind::kReduction)
    return PlanOwn(reduction, *own, *arrays, *extras, *data_type, existing);
  if (arrays->size() != 1) {
    return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, "reduction.more_inputs",
                        "only a client's reduction takes several inputs");
  }
  if (rule != nullptr)
    return PlanBuiltIn(reduction, *rule, OfArray((*arrays)[0]), *extras, *data_type, existing);
  return PlanByUfunc(reduction, (*arrays)[0], *extras, *data_type, existing, functions);
}

}  // namespace stride::ops
