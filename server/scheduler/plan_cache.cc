#include "server/scheduler/plan_cache.h"

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace stride::scheduler {
namespace {

// A plan takes a few kilobytes.
constexpr size_t kMaxPlans = 4096;

}  // namespace

class KeyWriter {
 public:
  explicit KeyWriter(PlanKey* key) : key_(*key) {}
  // Nothing of a key that grew too long.
  void End() { key_.size_ = full_ ? 0 : size_; }
  template <typename Number>
  void Add(Number value) {
    AddBytes(&value, sizeof(value));
  }
  void AddText(std::string_view text) {
    Add(text.size());
    AddBytes(text.data(), text.size());
  }
  void AddNumbers(const std::vector<int64_t>& numbers) {
    Add(numbers.size());
    AddBytes(numbers.data(), numbers.size() * sizeof(int64_t));
  }
  void AddMessage(const google::protobuf::MessageLite& message) {
    const size_t size = message.ByteSizeLong();
    Add(size);
    if (char* room = Take(size))
      message.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(room));
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

 private:
  void AddBytes(const void* bytes, size_t size) {
    char* room = Take(size);
    if (room != nullptr && size > 0) std::memcpy(room, bytes, size);
  }
  // Null: there is no more.
  char* Take(size_t size) {
    full_ = full_ || size > PlanKey::kMaxBytes - size_;
    if (full_) return nullptr;
    size_ += size;
    return key_.bytes_ + size_ - size;
  }

  PlanKey& key_;
  size_t size_ = 0;
  bool full_ = false;
};

namespace {

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
  key.Add(reduction.has_input());
  key.AddOperand(reduction.input());
  key.Add(reduction.has_expression());
  if (reduction.has_expression()) AddKind(reduction.expression(), key);
  key.AddOperands(reduction.more_inputs());
  key.Add(reduction.has_initial());
  if (reduction.has_initial()) key.AddMessage(reduction.initial());
  key.Add(reduction.has_where());
  if (reduction.has_where()) key.AddOperand(reduction.where());
  key.Add(reduction.skip_nan());
}

void AddKind(const v1::Matmul& matmul, KeyWriter& key) {
  key.AddOperand(matmul.left());
  key.AddOperand(matmul.right());
  key.Add(matmul.data_type());
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

PlanKey::PlanKey(const v1::Operation& operation, absl::Span<const ArrayInfo* const> inputs,
                 absl::Span<const ArrayInfo* const> existing) {
  const auto kind = operation.kind_case();
  const bool is_kept = kind == v1::Operation::kUfunc || kind == v1::Operation::kExpression ||
                       kind == v1::Operation::kReduction || kind == v1::Operation::kMatmul ||
                       (kind == v1::Operation::kCopy && !operation.copy().move());
  if (!is_kept) return;
  KeyWriter key(this);
  key.Add(kind);
  switch (kind) {
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
      AddKind(operation.copy(), key);
      break;
    default:
      break;
  }
  key.AddArrays(inputs);
  key.AddArrays(existing);
  key.End();
}

std::shared_ptr<const Planned> PlanCache::Find(std::string_view key) const {
  auto found = plans_.find(key);
  return found != plans_.end() ? found->second : nullptr;
}

void PlanCache::Keep(std::string_view key, std::shared_ptr<const Planned> planned) {
  // What is in use comes back at once.
  if (plans_.size() >= kMaxPlans) plans_.clear();
  plans_.emplace(key, std::move(planned));
}

}  // namespace stride::scheduler
