#include "server/scheduler/plan_cache.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "server/ops/operands.h"

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
  key.Add(reduction.correction());
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

void AddExtents(const v1::Dim3& extents, KeyWriter& key) {
  key.Add(extents.x());
  key.Add(extents.y());
  key.Add(extents.z());
}

// Values of numbers are no part of the plan: they are bound to the task (HaveArguments).
void AddKind(const TenantId& tenant, const v1::KernelLaunch& launch, KeyWriter& key) {
  key.AddText(tenant.value);
  key.Add(launch.code_case());
  key.AddText(launch.source());
  key.AddText(launch.ptx());
  key.AddText(launch.binary());
  key.AddText(launch.module());
  key.Add(launch.options_size());
  for (const std::string& option : launch.options()) key.AddText(option);
  key.AddText(launch.entry());
  key.Add(launch.has_grid());
  AddExtents(launch.grid(), key);
  key.Add(launch.has_block());
  AddExtents(launch.block(), key);
  key.Add(launch.shared_memory_bytes());
  key.Add(launch.cooperative());
  key.Add(launch.arguments_size());
  for (const v1::KernelArgument& argument : launch.arguments()) key.Add(argument.value_case());
}

// Kinds whose plans depend on their whole message, but for which arrays it reads, and which come
// again: a random number's place in its sequence and a view's start do not.
bool IsKeptWhole(const v1::Operation& operation) {
  switch (operation.kind_case()) {
    case v1::Operation::kCreation:
      return operation.creation().has_empty() || operation.creation().has_fill();
    case v1::Operation::kAccumulation:
    case v1::Operation::kGather:
    case v1::Operation::kScatter:
    case v1::Operation::kSort:
    case v1::Operation::kSearch:
    case v1::Operation::kLinalg:
    case v1::Operation::kFft:
    case v1::Operation::kHistogram:
    case v1::Operation::kTopK:
    case v1::Operation::kGroupReduce:
    case v1::Operation::kSelect:
    case v1::Operation::kPartition:
    case v1::Operation::kInterpolate:
    case v1::Operation::kCorrelate:
    case v1::Operation::kReduceAt:
    case v1::Operation::kOuter:
    case v1::Operation::kApplyAt:
      return true;
    default:
      return false;
  }
}

// The message, but for outputs and the arrays that it reads.
void AddWhole(const v1::Operation& operation, KeyWriter& key) {
  v1::Operation kept = operation;
  kept.clear_outputs();
  kept.clear_device();
  kept.clear_priority();
  for (const v1::Operand* operand : ops::OperandsOf(kept)) {
    if (!operand->has_scalar()) const_cast<v1::Operand*>(operand)->Clear();  // of `kept`
  }
  key.AddMessage(kept);
}

bool HasPlainArguments(const v1::KernelLaunch& launch) {
  return launch.globals().empty() &&
         std::all_of(launch.arguments().begin(), launch.arguments().end(),
                     [](const v1::KernelArgument& argument) {
                       return argument.value_case() == v1::KernelArgument::kArray ||
                              argument.value_case() == v1::KernelArgument::kScalar;
                     });
}

}  // namespace

std::shared_ptr<const Planned> NoPlan() {
  static const auto& none = *new std::shared_ptr<const Planned>(MakePlanned({}));
  return none;
}

PlanKey::PlanKey(const TenantId& tenant, const v1::Operation& operation,
                 absl::Span<const ArrayInfo* const> inputs,
                 absl::Span<const ArrayInfo* const> existing) {
  const auto kind = operation.kind_case();
  const bool is_kept =
      kind == v1::Operation::kUfunc || kind == v1::Operation::kExpression ||
      kind == v1::Operation::kReduction || kind == v1::Operation::kMatmul ||
      (kind == v1::Operation::kCopy && !operation.copy().move()) ||
      (kind == v1::Operation::kKernelLaunch && HasPlainArguments(operation.kernel_launch())) ||
      (IsKeptWhole(operation) && operation.ByteSizeLong() <= kMaxBytes);
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
    case v1::Operation::kKernelLaunch:
      AddKind(tenant, operation.kernel_launch(), key);
      break;
    default:
      AddWhole(operation, key);
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
  // Plans in use are found again at their next operation.
  if (plans_.size() >= kMaxPlans) plans_.clear();
  plans_.emplace(key, std::move(planned));
}

}  // namespace stride::scheduler
