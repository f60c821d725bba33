#include "cpucuda/compiler/spmd/constant_tables.h"

#include <optional>
#include <vector>

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

namespace stride::cpucuda::spmd {
namespace {

using llvm::Instruction;
using llvm::Value;

constexpr uint64_t kMaxTableBytes = 64 << 10;

class Table {
 public:
  explicit Table(llvm::AllocaInst* array)
      : array_(array), layout_(array->getModule()->getDataLayout()) {}

  // Whether each byte has one value. A byte has no value before its store, so a read before the
  // store may return the stored value.
  bool Read() {
    auto size = array_->getAllocationSize(layout_);
    if (!size || size->isScalable() || size->getFixedValue() > kMaxTableBytes) return false;
    bytes_.resize(size->getFixedValue());
    pointers_.insert(array_);
    for (size_t i = 0; i < pointers_.size(); ++i) {
      for (llvm::User* user : pointers_[i]->users()) {
        if (!ReadUse(llvm::cast<Instruction>(user), pointers_[i])) return false;
      }
    }
    return !stores_.empty();
  }

  void Fold() {
    std::vector<uint8_t> content;
    for (const std::optional<uint8_t>& byte : bytes_) content.push_back(byte.value_or(0));
    llvm::Constant* data = llvm::ConstantDataArray::get(array_->getContext(), content);
    auto* table = new llvm::GlobalVariable(*array_->getModule(), data->getType(), true,
                                           llvm::GlobalValue::PrivateLinkage, data, "table");
    table->setAlignment(array_->getAlign());
    table->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    for (Instruction* store : stores_) store->eraseFromParent();
    for (Instruction* marker : markers_) marker->eraseFromParent();
    array_->replaceAllUsesWith(table);
    array_->eraseFromParent();
  }

 private:
  bool ReadUse(Instruction* user, Value* pointer) {
    if (user->isLifetimeStartOrEnd()) {
      markers_.insert(user);
      return true;
    }
    if (llvm::isa<llvm::GetElementPtrInst>(user)) {
      pointers_.insert(user);
      return user->getType()->isPointerTy();
    }
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(user)) return load->isSimple();
    auto* store = llvm::dyn_cast<llvm::StoreInst>(user);
    if (store == nullptr || !store->isSimple() || store->getValueOperand() == pointer) return false;
    stores_.insert(store);
    return Put(store->getValueOperand(), store->getPointerOperand());
  }

  bool Put(Value* value, Value* pointer) {
    llvm::APInt offset(64, 0);
    if (pointer->stripAndAccumulateConstantOffsets(layout_, offset, true) != array_) return false;
    std::optional<llvm::APInt> bits;
    if (auto* whole = llvm::dyn_cast<llvm::ConstantInt>(value)) bits = whole->getValue();
    if (auto* real = llvm::dyn_cast<llvm::ConstantFP>(value))
      bits = real->getValue().bitcastToAPInt();
    const uint64_t size = layout_.getTypeStoreSize(value->getType()).getFixedValue();
    if (!bits || bits->getBitWidth() != 8 * size) return false;
    if (offset.isNegative() || offset.ugt(bytes_.size()) ||
        size > bytes_.size() - offset.getZExtValue())
      return false;
    for (uint64_t i = 0; i < size; ++i) {
      const auto byte = static_cast<uint8_t>(bits->extractBitsAsZExtValue(8, 8 * i));
      std::optional<uint8_t>& known = bytes_[offset.getZExtValue() + i];
      if (known.has_value() && *known != byte) return false;
      known = byte;
    }
    return true;
  }

  llvm::AllocaInst* const array_;
  const llvm::DataLayout& layout_;
  std::vector<std::optional<uint8_t>> bytes_;
  llvm::SetVector<Value*> pointers_;
  llvm::SetVector<Instruction*> stores_, markers_;
};

}  // namespace

void FoldConstantTables(llvm::Function& kernel) {
  std::vector<llvm::AllocaInst*> arrays;
  for (Instruction& instruction : llvm::instructions(kernel)) {
    if (auto* array = llvm::dyn_cast<llvm::AllocaInst>(&instruction)) arrays.push_back(array);
  }
  for (llvm::AllocaInst* array : arrays) {
    Table table(array);
    if (table.Read()) table.Fold();
  }
}

}  // namespace stride::cpucuda::spmd
