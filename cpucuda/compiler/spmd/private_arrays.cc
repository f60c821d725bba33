#include "cpucuda/compiler/spmd/private_arrays.h"

#include <algorithm>
#include <vector>

#include "cpucuda/compiler/spmd/uniformity.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"

namespace stride::cpucuda::spmd {
namespace {

using llvm::AllocaInst;
using llvm::Instruction;
using llvm::IRBuilder;
using llvm::Value;

// Rows as long as a power of two would share a few sets of the cache. Few rows do no harm.
constexpr uint64_t kRowPadding = 64, kFewRows = 8;

std::vector<AllocaInst*> PrivateArrays(llvm::Function& function) {
  std::vector<AllocaInst*> arrays;
  for (Instruction& instruction : llvm::instructions(function)) {
    if (auto* array = llvm::dyn_cast<AllocaInst>(&instruction)) arrays.push_back(array);
  }
  return arrays;
}

// A fill or a copy becomes a loop over items of `item` bytes, which then need not lie one after
// another. The loop reads and writes the same bytes in the same order.
void MakeLoop(llvm::MemIntrinsic* transfer, uint64_t item) {
  llvm::BasicBlock* before = transfer->getParent();
  llvm::LLVMContext& context = before->getContext();
  llvm::Function* function = before->getParent();
  llvm::BasicBlock* after = before->splitBasicBlock(transfer, "transferred");
  auto* loop = llvm::BasicBlock::Create(context, "transfer", function, after);
  before->getTerminator()->eraseFromParent();
  IRBuilder<> start(before);
  Value* length = start.CreateZExtOrTrunc(transfer->getLength(), start.getInt64Ty());
  Value* count = start.CreateUDiv(length, start.getInt64(item), "", true);
  start.CreateCondBr(start.CreateICmpEQ(count, start.getInt64(0)), after, loop);
  IRBuilder<> builder(loop);
  llvm::Type* type = builder.getIntNTy(static_cast<unsigned>(8 * item));
  llvm::PHINode* index = builder.CreatePHI(builder.getInt64Ty(), 2);
  Value* value = nullptr;
  if (auto* fill = llvm::dyn_cast<llvm::MemSetInst>(transfer)) {
    const llvm::APInt ones = llvm::APInt::getSplat(8 * item, llvm::APInt(8, 1));
    value = builder.CreateMul(builder.CreateZExt(fill->getValue(), type),
                              llvm::ConstantInt::get(type, ones));
  } else {
    Value* from = llvm::cast<llvm::MemTransferInst>(transfer)->getSource();
    value = builder.CreateAlignedLoad(type, builder.CreateInBoundsGEP(type, from, index),
                                      llvm::Align(1));
  }
  Value* to = builder.CreateInBoundsGEP(type, transfer->getDest(), index);
  builder.CreateAlignedStore(value, to, llvm::Align(1));
  Value* next = builder.CreateAdd(index, builder.getInt64(1), "", true, true);
  builder.CreateCondBr(builder.CreateICmpULT(next, count), loop, after);
  index->addIncoming(builder.getInt64(0), before);
  index->addIncoming(next, loop);
  transfer->eraseFromParent();
}

// All uses of one private array.
class PrivateArray {
 public:
  PrivateArray(AllocaInst* array, Shape& shape)
      : array_(array), shape_(shape), layout_(shape.function->getParent()->getDataLayout()) {}

  // Whether the array may have another layout and gains from it.
  bool Qualifies() {
    return Collect() && FindItem() && HasWholeOffsets() && num_together_ > num_apart_;
  }

  bool HasTransfers() const { return !transfers_.empty(); }
  void LowerTransfers() {
    for (llvm::MemIntrinsic* transfer : transfers_) MakeLoop(transfer, item_);
  }

  // Without transfers.
  void Interleave() {
    const uint64_t rows = (size_ + item_ - 1) / item_;
    const uint64_t padding = rows > kFewRows ? kRowPadding : 0;
    // Scratch has room for kRowPadding threads at least: a byte of each makes a row's padding.
    Value* start = shape_.AllocateArray(rows * item_ + (padding > 0 ? rows : 0), "private");
    IRBuilder<> before(shape_.prologue->getTerminator());
    pitch_ = before.CreateAdd(
        before.CreateMul(shape_.rounded_threads, before.getInt64(item_), "", true, true),
        before.getInt64(padding), "pitch", true, true);
    IRBuilder<> builder(shape_.entry->getTerminator());
    Value* thread = builder.CreateZExt(shape_.thread[3], builder.getInt64Ty());
    Value* offset = builder.CreateMul(thread, builder.getInt64(item_), "", true, true);
    Value* first = builder.CreateInBoundsGEP(builder.getInt8Ty(), start, offset);
    for (Instruction* address : addresses_) Stretch(llvm::cast<llvm::GEPOperator>(address));
    for (Instruction* access : accesses_) {
      const llvm::Align align = std::min(llvm::getLoadStoreAlignment(access), llvm::Align(item_));
      if (auto* load = llvm::dyn_cast<llvm::LoadInst>(access)) {
        load->setAlignment(align);
      } else {
        llvm::cast<llvm::StoreInst>(access)->setAlignment(align);
      }
    }
    array_->replaceAllUsesWith(first);
    array_->eraseFromParent();
  }

 private:
  // All pointers into the array, and their uses; false when one of them goes elsewhere.
  bool Collect() {
    auto size = array_->getAllocationSize(layout_);
    if (!size || size->isScalable()) return false;
    size_ = size->getFixedValue();
    pointers_.insert(array_);
    for (size_t i = 0; i < pointers_.size(); ++i) {
      for (llvm::User* user : pointers_[i]->users()) {
        if (!Note(llvm::cast<Instruction>(user), pointers_[i])) return false;
      }
    }
    return llvm::all_of(joins_, [&](Instruction* join) {
      return llvm::all_of(join->operands(), [&](Value* operand) {
        return !operand->getType()->isPointerTy() || pointers_.contains(operand);
      });
    });
  }
  bool Note(Instruction* user, Value* pointer) {
    if (llvm::isa<llvm::GetElementPtrInst>(user)) {
      addresses_.insert(user);
      pointers_.insert(user);
      return user->getType()->isPointerTy();
    }
    if (llvm::isa<llvm::PHINode, llvm::SelectInst, llvm::ICmpInst>(user)) {
      joins_.insert(user);
      if (!llvm::isa<llvm::ICmpInst>(user)) pointers_.insert(user);
      return true;
    }
    // To and from the array is two uses.
    if (auto* transfer = llvm::dyn_cast<llvm::MemIntrinsic>(user))
      return !transfer->isVolatile() && transfers_.insert(transfer);
    const bool stores_it = llvm::isa<llvm::StoreInst>(user) && user->getOperand(0) == pointer;
    if (!llvm::isa<llvm::LoadInst, llvm::StoreInst>(user) || user->isAtomic() || stores_it)
      return false;
    accesses_.insert(user);
    return true;
  }

  // Whether all accesses have one size.
  bool FindItem() {
    for (Instruction* access : accesses_) {
      llvm::Type* type = llvm::getLoadStoreType(access);
      const uint64_t bytes = layout_.getTypeStoreSize(type).getFixedValue();
      if (type->isVectorTy() || (item_ != 0 && item_ != bytes)) return false;
      item_ = bytes;
    }
    if (item_ == 0 || !llvm::isPowerOf2_64(item_) || item_ > 8) return false;
    return llvm::all_of(transfers_, [&](llvm::MemIntrinsic* transfer) {
      return llvm::computeKnownBits(transfer->getLength(), layout_).countMinTrailingZeros() >=
             llvm::Log2_64(item_);
    });
  }

  // Whether each address lies whole items from its base. Counts the addresses with the same index
  // in all threads, and the others.
  bool HasWholeOffsets() {
    for (Instruction* address : addresses_) {
      llvm::MapVector<Value*, llvm::APInt> variable;
      llvm::APInt constant(64, 0);
      if (!llvm::cast<llvm::GEPOperator>(address)->collectOffset(layout_, 64, variable, constant))
        return false;
      if (constant.srem(static_cast<int64_t>(item_)) != 0) return false;
      bool together = true;
      for (auto& [index, scale] : variable) {
        if (scale.urem(item_) != 0) return false;
        together = together && !shape_.IsVarying(index);
      }
      ++(together ? num_together_ : num_apart_);
    }
    return true;
  }

  // The address of `n` items further on becomes that of `n` rows further on.
  void Stretch(llvm::GEPOperator* address) {
    auto* old = llvm::cast<Instruction>(address);
    llvm::MapVector<Value*, llvm::APInt> variable;
    llvm::APInt constant(64, 0);
    address->collectOffset(layout_, 64, variable, constant);
    IRBuilder<> builder(old);
    Value* items = builder.getInt64(constant.getSExtValue() / static_cast<int64_t>(item_));
    for (auto& [index, scale] : variable) {
      Value* wide = builder.CreateSExtOrTrunc(index, builder.getInt64Ty());
      Value* part = builder.CreateMul(wide, builder.getInt64(scale.getZExtValue() / item_));
      items = builder.CreateAdd(items, part);
    }
    Value* made = builder.CreateGEP(builder.getInt8Ty(), address->getPointerOperand(),
                                    builder.CreateMul(items, pitch_));
    old->replaceAllUsesWith(made);
    old->eraseFromParent();
  }

  AllocaInst* const array_;
  Shape& shape_;
  const llvm::DataLayout& layout_;
  uint64_t size_ = 0, item_ = 0;  // bytes
  llvm::SetVector<Value*> pointers_;
  llvm::SetVector<Instruction*> addresses_, joins_, accesses_;
  llvm::SetVector<llvm::MemIntrinsic*> transfers_;
  int num_together_ = 0, num_apart_ = 0;
  Value* pitch_ = nullptr;
};

}  // namespace

void InterleavePrivateArrays(Shape& shape) {
  std::vector<AllocaInst*> arrays = PrivateArrays(*shape.function);
  if (arrays.empty()) return;
  // Before the change of layout each thread has its own array, so values read from it vary.
  FindVarying(shape);
  for (AllocaInst* array : arrays) {
    PrivateArray one(array, shape);
    if (one.Qualifies()) one.LowerTransfers();
  }
  // A transfer may use another of the arrays too.
  for (AllocaInst* array : arrays) {
    PrivateArray one(array, shape);
    if (one.Qualifies() && !one.HasTransfers()) one.Interleave();
  }
  shape.varying.clear();
  shape.divergent_branches.clear();
}

absl::Status MovePrivateArrays(Shape& shape, uint64_t at_least) {
  const llvm::DataLayout& layout = shape.function->getParent()->getDataLayout();
  IRBuilder<> builder(shape.entry->getTerminator());
  for (AllocaInst* array : PrivateArrays(*shape.function)) {
    auto size = array->getAllocationSize(layout);
    if (!size)
      return absl::UnimplementedError(
          "the CPU device has no variable-length private arrays (alloca)");
    uint64_t bytes = (size->getFixedValue() + 15) / 16 * 16;
    if (bytes < at_least) continue;
    Value* start = shape.AllocateArray(bytes, "private");
    Value* index = builder.CreateZExt(shape.thread[3], builder.getInt64Ty());
    Value* offset = builder.CreateMul(index, builder.getInt64(bytes), "", true, true);
    array->replaceAllUsesWith(builder.CreateInBoundsGEP(builder.getInt8Ty(), start, offset));
    array->eraseFromParent();
  }
  return absl::OkStatus();
}

}  // namespace stride::cpucuda::spmd
