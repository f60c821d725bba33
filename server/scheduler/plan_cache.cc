#include "server/scheduler/plan_cache.h"

#include <cstdint>
#include <string_view>
#include <utility>

namespace stride::scheduler {
namespace {

// A plan takes a few kilobytes.
constexpr size_t kMaxPlans = 4096;
constexpr size_t kMaxKeyBytes = 4096;
constexpr size_t kUsualKeyBytes = 256;

class KeyWriter {
 public:
  KeyWriter() { key_.reserve(kUsualKeyBytes); }

  template <typename Number>
  void Add(Number value) {
    key_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void AddText(std::string_view text) {
    Add(text.size());
    key_.append(text);
  }
  void AddNumbers(const std::vector<int64_t>& numbers) {
    Add(numbers.size());
    key_.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int64_t));
  }
  void AddMessage(const google::protobuf::MessageLite& message) {
    Add(message.ByteSizeLong());
    message.AppendToString(&key_);
  }
  // A number is part of the plan, of an array only its place among the inputs.
  void AddOperand(const v1::Operand& operand) {
    Add(operand.has_scalar());
    if (operand.has_scalar()) AddMessage(operand.scalar());
  }
  void AddOperands(const google::protobuf::RepeatedPtrField<v1::Operand>& operands) {
    Add(operands.size());
    for (const v1::Operand& operand : operands) AddOperand(operand);
  }
  void AddArrays(absl::Span<const ArrayInfo* const> arrays) {
    Add(arrays.size());
    for (const ArrayInfo* array : arrays) {
      Add(array != nullptr);
      if (array == nullptr) continue;
      Add(array->dtype);
      Add(array->offset);
      AddNumbers(array->shape);
      AddNumbers(array->strides);
    }
  }
  std::string Take() { return key_.size() <= kMaxKeyBytes ? std::move(key_) : std::string(); }

 private:
  std::string key_;
};

void AddKind(const v1::Ufunc& ufunc, KeyWriter& key) {
  key.AddText(ufunc.function());
  key.Add(ufunc.data_type());
  key.Add(ufunc.casting());
  key.AddOperands(ufunc.inputs());
  key.Add(ufunc.has_where());
  if (ufunc.has_where()) key.AddOperand(ufunc.where());
}

void AddKind(const v1::Expression& expression, KeyWriter& key) {
  key.AddText(expression.text());
  key.Add(expression.data_type());
  // In the order of CollectOperands, which is that of the arrays.
  std::map<std::string_view, const v1::Operand*> inputs;
  for (const auto& [name, operand] : expression.inputs()) inputs[name] = &operand;
  for (const auto& [name, operand] : inputs) {
    key.AddText(name);
    key.AddOperand(*operand);
  }
}

void AddKind(const v1::Reduction& reduction, KeyWriter& key) {
  key.Add(reduction.function());
  key.AddText(reduction.function_name());
  key.Add(reduction.data_type());
  key.Add(reduction.keep_dims());
  key.Add(reduction.axes_size());
  for (int32_t axis : reduction.axes()) key.Add(axis);
  key.AddOperand(reduction.input());
  key.AddOperands(reduction.more_inputs());
  key.Add(reduction.has_initial());
  if (reduction.has_initial()) key.AddMessage(reduction.initial());
  key.Add(reduction.has_where());
  if (reduction.has_where()) key.AddOperand(reduction.where());
}

void AddKind(const v1::Matmul& matmul, KeyWriter& key) {
  key.AddOperand(matmul.left());
  key.AddOperand(matmul.right());
}

void AddKind(const v1::Copy& copy, KeyWriter& key) {
  key.AddOperand(copy.input());
  key.Add(copy.data_type());
}

}  // namespace

std::shared_ptr<const Planned> NoPlan() {
  static const auto& none = *new std::shared_ptr<const Planned>(MakePlanned({}));
  return none;
}

std::string PlanCache::KeyOf(const v1::Operation& operation,
                             absl::Span<const ArrayInfo* const> inputs,
                             absl::Span<const ArrayInfo* const> existing) {
  KeyWriter key;
  key.Add(operation.kind_case());
  switch (operation.kind_case()) {
    case v1::Operation::kUfunc:
      AddKind(operation.ufunc(), key);
      break;
    case v1::Operation::kExpression:
      AddKind(operation.expression(), key);
      break;
    case v1::Operation::kReduction:
      AddKind(operation.reduction(), key);
      break;
    case v1::Operation::kMatmul:
      AddKind(operation.matmul(), key);
      break;
    case v1::Operation::kCopy:
      if (operation.copy().move()) return "";
      AddKind(operation.copy(), key);
      break;
    default:
      return "";
  }
  key.AddArrays(inputs);
  key.AddArrays(existing);
  return key.Take();
}

std::shared_ptr<const Planned> PlanCache::Find(const std::string& key) const {
  auto found = plans_.find(key);
  return found != plans_.end() ? found->second : nullptr;
}

void PlanCache::Keep(std::string key, std::shared_ptr<const Planned> planned) {
  // What is in use comes back at once.
  if (plans_.size() >= kMaxPlans) plans_.clear();
  plans_.emplace(std::move(key), std::move(planned));
}

}  // namespace stride::scheduler
