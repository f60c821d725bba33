#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "server/base/ids.h"
#include "server/ops/operation_view.h"
#include "server/store/array_info.h"

namespace stride::ops {

// The bytes that a plan depends on: the operation and the layout of its arrays, never their
// contents or names. A key is made for every operation. It allocates no memory for kinds that are
// small and frequent; the others are copied (WholeKey).
class PlanKey {
 public:
  // Null stands for an array that is not there (a scalar, a new output). Only a key with a client's
  // code depends on the operation's tenant: tenants do not share compiled code of theirs.
  PlanKey(const TenantId& tenant, const OperationView& operation,
          absl::Span<const ArrayInfo* const> inputs, absl::Span<const ArrayInfo* const> existing);
  PlanKey(const PlanKey&) = delete;
  PlanKey& operator=(const PlanKey&) = delete;

  // Equal for operations of equal plans. Empty: such plans are not kept (OperationKind::key).
  std::string_view bytes() const { return {bytes_, size_}; }

  static constexpr size_t kMaxBytes = 4096;

 private:
  friend class KeyWriter;
  char bytes_[kMaxBytes];
  size_t size_ = 0;
};

// Appends to a key. A key that grows beyond kMaxBytes is empty at the end.
class KeyWriter {
 public:
  explicit KeyWriter(PlanKey* key) : key_(*key) {}
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
  // A number is part of the plan, an array only by its place among the inputs.
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

}  // namespace stride::ops
