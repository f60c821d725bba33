#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/planners.h"
#include "server/ops/promotion.h"
#include "server/ops/reduce_plan.h"
#include "server/ops/rename_fields.h"
#include "server/ops/routine_plan.h"

// Products of matrices are matmul's, on views; sums of products with a conjugate are reductions.
namespace stride::ops {
namespace {

constexpr char kInputs[] = "gufunc.inputs";
struct BuiltIn {
  std::string_view name, layout;
};
constexpr BuiltIn kBuiltIn[] = {{"matmul", "(m?,n),(n,p?)->(m?,p?)"},
                                {"vecdot", "(n),(n)->()"},
                                {"matvec", "(m,n),(n)->(m)"},
                                {"vecmat", "(n),(n,m)->(m)"}};

const BuiltIn* Find(std::string_view name) {
  for (const BuiltIn& one : kBuiltIn) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

absl::Status Mismatch(const char* layout, const Input& left, const Input& right) {
  return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, "gufunc.inputs[1]",
                      absl::StrCat("the shapes do not fit ", layout, ": ", ToString(left->shape),
                                   " and ", ToString(right->shape)));
}

// With one more axis of length one, `from_end` axes before the end.
Input WithAxis(Input array, size_t from_end) {
  if (!array || array->shape.size() < from_end) return array;
  const size_t place = array->shape.size() - from_end;
  array->shape.insert(array->shape.begin() + place, 1);
  array->strides.insert(array->strides.begin() + place, ItemSize(array->dtype));
  return array;
}

absl::StatusOr<Plan> ByMatmul(const v1::Gufunc& gufunc, const std::vector<Input>& views,
                              const Input& existing) {
  v1::Matmul matmul;
  *matmul.mutable_left() = gufunc.inputs(0);
  *matmul.mutable_right() = gufunc.inputs(1);
  auto plan = PlanMatmul(matmul, views, existing);
  if (plan.ok()) return plan;
  return RenameFields(plan.status(), {{"matmul.left", "gufunc.inputs[0]"},
                                      {"matmul.right", "gufunc.inputs[1]"},
                                      {"matmul", kInputs}});
}

void DropAxis(size_t from_end, Plan* plan) {
  ArrayInfo& output = plan->outputs[0];
  output.shape.erase(output.shape.end() - static_cast<int64_t>(from_end));
  output.strides.erase(output.strides.end() - static_cast<int64_t>(from_end));
}

// The sum along one axis, `from_end` before the end, of conjugate(a), or a, times b. Both
// broadcast.
absl::StatusOr<Plan> SumOfProducts(const v1::Gufunc& gufunc, const ArrayInfo& left,
                                   const ArrayInfo& right, size_t from_end, const Input& existing,
                                   bool conjugates = true) {
  auto shape = BroadcastShapes({left.shape, right.shape}, kInputs);
  if (!shape.ok()) return shape.status();
  const DType dtype = PromoteTypes(left.dtype, right.dtype);
  ReduceSpec spec;
  spec.inputs = {BroadcastTo(left, *shape), BroadcastTo(right, *shape)};
  spec.is_reduced.assign(shape->size(), false);
  spec.is_reduced[shape->size() - from_end] = true;
  auto output = ChooseOutput(dtype, ReduceShapeOf(*shape, spec.is_reduced, false).result, existing);
  if (!output.ok()) return output.status();
  spec.accumulator = ComputeType(dtype);
  Value a = spec.map.Cast(spec.map.Input(0, left.dtype), spec.accumulator);
  const Value b = spec.map.Cast(spec.map.Input(1, right.dtype), spec.accumulator);
  if (conjugates && IsComplex(left.dtype)) a = spec.map.Op("conjugate", {a}, spec.accumulator);
  spec.mapped = spec.map.Op("multiply", {a, b}, spec.accumulator);
  spec.finished = spec.finish.Cast(spec.finish.Input(0, spec.accumulator), dtype);
  spec.combine = wire::ReduceCode::COMBINE_ADD;
  spec.output = *std::move(output);
  return MakeReducePlan(std::move(spec));
}

absl::StatusOr<Plan> PlanTyped(const v1::Gufunc& gufunc, const std::vector<Input>& inputs,
                               const Input& existing) {
  const std::string& name = gufunc.function();
  const ArrayInfo &left = *inputs[0], &right = *inputs[1];
  if (name == "matmul") return ByMatmul(gufunc, inputs, existing);
  if (name == "vecdot") {
    if (left.shape.empty() || right.shape.empty() || left.shape.back() != right.shape.back())
      return Mismatch("(n),(n)->()", inputs[0], inputs[1]);
    return SumOfProducts(gufunc, left, right, 1, existing);
  }
  if (name == "matvec") {
    if (left.shape.size() < 2 || right.shape.empty() || left.shape.back() != right.shape.back())
      return Mismatch("(m,n),(n)->(m)", inputs[0], inputs[1]);
    auto plan = ByMatmul(gufunc, {inputs[0], WithAxis(inputs[1], 0)}, WithAxis(existing, 0));
    if (plan.ok()) DropAxis(1, &*plan);
    return plan;
  }
  if (left.shape.empty() || right.shape.size() < 2 ||
      left.shape.back() != right.shape[right.shape.size() - 2])
    return Mismatch("(n),(n,m)->(m)", inputs[0], inputs[1]);
  if (IsComplex(left.dtype))
    return SumOfProducts(gufunc, *WithAxis(inputs[0], 0), right, 2, existing);
  auto plan = ByMatmul(gufunc, {WithAxis(inputs[0], 1), inputs[1]}, WithAxis(existing, 1));
  if (plan.ok()) DropAxis(2, &*plan);
  return plan;
}

}  // namespace

bool IsBuiltInGufunc(std::string_view name) { return Find(name) != nullptr; }

std::string_view LayoutOf(std::string_view built_in) { return Find(built_in)->layout; }

absl::StatusOr<Plan> PlanBuiltInStrided(const v1::Gufunc& gufunc, Inputs inputs,
                                        const Input& existing) {
  const std::string& name = gufunc.function();
  Input left = inputs[0], right = inputs[1];
  // Pair rows of the left with columns of the right.
  const size_t right_rank = right->shape.size();
  const bool matrix = name == "vecmat" || (name == "matmul" && right_rank > 1);
  if (matrix) {
    std::swap(right->shape[right_rank - 1], right->shape[right_rank - 2]);
    std::swap(right->strides[right_rank - 1], right->strides[right_rank - 2]);
  }
  const bool left_vector = name == "vecmat" || (name == "matmul" && left->shape.size() == 1);
  if (matrix && !(name == "matmul" && left_vector)) left = WithAxis(left, 1);
  if (!left_vector && (matrix || name == "matvec")) {
    right = WithAxis(right, matrix ? 2 : 1);
  }
  return SumOfProducts(gufunc, *left, *right, 1, existing, name == "vecdot" || name == "vecmat");
}

absl::StatusOr<Plan> PlanBuiltInGufunc(const v1::Gufunc& gufunc, Inputs inputs,
                                       const Input& existing) {
  if (inputs.size() != 2) {
    return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, kInputs,
                        absl::StrCat("the function takes two inputs, not ", inputs.size()));
  }
  auto data_type = ReadDataType(gufunc.data_type(), "gufunc.data_type");
  if (!data_type.ok()) return data_type.status();
  std::vector<Input> typed;
  std::vector<std::optional<DType>> conversions;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto array = NeedArray(inputs[i], absl::StrCat(kInputs, "[", i, "]"));
    if (!array.ok()) return array.status();
    const DType dtype = data_type->value_or(array->dtype);
    if (!CanCastSameKind(array->dtype, dtype)) {
      return InvalidField(
          v1::ERROR_REASON_DATA_TYPE_MISMATCH, "gufunc.data_type",
          absl::StrCat("the input cannot be cast without changing its kind: ",
                       std::string(Name(array->dtype)), " to ", std::string(Name(dtype))));
    }
    conversions.push_back(dtype == array->dtype ? std::nullopt : std::optional<DType>(dtype));
    array->dtype = dtype;
    typed.emplace_back(*array);
  }
  // In the types that the inputs are to have; then with copies that have them.
  auto plan = PlanTyped(gufunc, typed, existing);
  const bool converts = std::any_of(conversions.begin(), conversions.end(),
                                    [](const auto& type) { return type.has_value(); });
  if (plan.ok() && converts) plan->converted_inputs = std::move(conversions);
  return plan;
}

}  // namespace stride::ops
