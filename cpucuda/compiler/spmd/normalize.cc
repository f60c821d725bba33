#include "cpucuda/compiler/spmd/normalize.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "cpucuda/compiler/spmd/private_arrays.h"
#include "cpucuda/runtime/block_context.h"
#include "cpucuda/runtime/block_scratch.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/LowerAtomic.h"

namespace stride::cpucuda::spmd {
namespace {

using llvm::BasicBlock;
using llvm::CallInst;
using llvm::Instruction;
using llvm::IRBuilder;
using llvm::Value;

llvm::Function* AddContextArgument(llvm::Function& old) {
  llvm::LLVMContext& context = old.getContext();
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                       {llvm::PointerType::getUnqual(context)}, false);
  llvm::Function* fresh =
      llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "", old.getParent());
  fresh->copyAttributesFrom(&old);
  fresh->takeName(&old);
  fresh->splice(fresh->begin(), &old);
  fresh->addParamAttr(0, llvm::Attribute::NoAlias);
  fresh->addParamAttr(0, llvm::Attribute::NoUndef);
  fresh->removeFnAttr(llvm::Attribute::Convergent);
  old.replaceAllUsesWith(llvm::PoisonValue::get(old.getType()));
  old.eraseFromParent();
  return fresh;
}

void RemoveMarkers(llvm::Function& function) {
  for (Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (call == nullptr) continue;
    switch (call->getIntrinsicID()) {
      case llvm::Intrinsic::lifetime_start:
      case llvm::Intrinsic::lifetime_end:
      case llvm::Intrinsic::assume:
      case llvm::Intrinsic::experimental_noalias_scope_decl:
        call->eraseFromParent();
        break;
      default:
        break;
    }
  }
}

void MergeReturns(Shape& shape) {
  llvm::Function& function = *shape.function;
  shape.exit = BasicBlock::Create(function.getContext(), "exit", &function);
  llvm::ReturnInst::Create(function.getContext(), shape.exit);
  for (BasicBlock& block : function) {
    if (&block == shape.exit || !llvm::isa<llvm::ReturnInst>(block.getTerminator())) continue;
    block.getTerminator()->eraseFromParent();
    llvm::BranchInst::Create(shape.exit, &block);
  }
  if (!llvm::pred_empty(shape.exit)) return;
  shape.exit->eraseFromParent();  // a kernel that never returns
  shape.exit = nullptr;
}

Value* LoadField(IRBuilder<>& builder, Value* context, uint64_t offset, llvm::Type* type) {
  Value* address =
      builder.CreateInBoundsGEP(builder.getInt8Ty(), context, builder.getInt64(offset));
  llvm::LoadInst* load = builder.CreateLoad(type, address);
  llvm::MDNode* empty = llvm::MDNode::get(builder.getContext(), {});
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, empty);
  if (type->isIntegerTy(32) && offset >= offsetof(BlockContext, block) &&
      offset < offsetof(BlockContext, block) + sizeof(BlockContext::block)) {
    llvm::MDBuilder metadata(builder.getContext());
    load->setMetadata(llvm::LLVMContext::MD_range,
                      metadata.createRange(llvm::APInt(32, 1), llvm::APInt(32, 1025)));
  }
  return load;
}

void MakePrologue(Shape& shape) {
  llvm::Function& function = *shape.function;
  shape.entry = &function.getEntryBlock();
  shape.entry->setName("thread");
  // The entry block may be a loop's header; a thread's start must not be.
  BasicBlock* start = BasicBlock::Create(function.getContext(), "start", &function, shape.entry);
  llvm::BranchInst::Create(shape.entry, start);
  shape.entry = start;
  shape.prologue = BasicBlock::Create(function.getContext(), "prologue", &function, start);
  llvm::BranchInst::Create(start, shape.prologue);
  shape.context = function.getArg(0);
  IRBuilder<> builder(shape.prologue->getTerminator());
  Value* threads = nullptr;
  for (int axis = 0; axis < 3; ++axis) {
    shape.block[axis] = LoadField(builder, shape.context, offsetof(BlockContext, block) + 4 * axis,
                                  builder.getInt32Ty());
    threads =
        axis == 0 ? shape.block[0] : builder.CreateMul(threads, shape.block[axis], "", true, true);
  }
  Value* wide = builder.CreateZExt(threads, builder.getInt64Ty());
  Value* up = builder.CreateAdd(wide, builder.getInt64(kScratchThreadRounding - 1), "", true, true);
  shape.rounded_threads =
      builder.CreateAnd(up, builder.getInt64(~(kScratchThreadRounding - 1)), "threads");
  shape.scratch =
      LoadField(builder, shape.context, offsetof(BlockContext, scratch), builder.getPtrTy());
  const char* names[] = {kThreadX, kThreadY, kThreadZ, kThreadLinear};
  auto* type = llvm::FunctionType::get(builder.getInt32Ty(), false);
  for (int i = 0; i < 4; ++i) {
    llvm::FunctionCallee callee = function.getParent()->getOrInsertFunction(names[i], type);
    shape.thread[i] = CallInst::Create(callee, names[i] + 9, start->getTerminator());
  }
}

// One call of each thread index, one load of each field.
absl::Status HoistFields(Shape& shape) {
  llvm::DenseMap<std::pair<uint64_t, llvm::Type*>, Value*> fields;
  for (int axis = 0; axis < 3; ++axis) {
    fields[{offsetof(BlockContext, block) + 4 * axis, shape.block[axis]->getType()}] =
        shape.block[axis];
  }
  fields[{offsetof(BlockContext, scratch), shape.scratch->getType()}] = shape.scratch;
  const llvm::StringRef threads[] = {kThreadX, kThreadY, kThreadZ, kThreadLinear};
  for (Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(*shape.function))) {
    llvm::StringRef name = CalleeName(instruction);
    if (!name.starts_with("__stride_") || instruction.getParent() == shape.entry) continue;
    Value* replacement = nullptr;
    for (int i = 0; i < 4; ++i) {
      if (name == threads[i]) replacement = shape.thread[i];
    }
    if (name == kContext) replacement = shape.context;
    if (name == kField || name == kPointer) {
      auto* offset = llvm::dyn_cast<llvm::ConstantInt>(instruction.getOperand(0));
      if (offset == nullptr)
        return absl::InternalError("a field of the block with no constant offset");
      Value*& known = fields[{offset->getZExtValue(), instruction.getType()}];
      IRBuilder<> builder(shape.prologue->getTerminator());
      if (known == nullptr)
        known = LoadField(builder, shape.context, offset->getZExtValue(), instruction.getType());
      replacement = known;
    }
    if (replacement == nullptr) continue;
    instruction.replaceAllUsesWith(replacement);
    instruction.eraseFromParent();
  }
  return absl::OkStatus();
}

// Kernel parameters do not change while the kernel runs.
void HoistParameters(Shape& shape) {
  const llvm::DataLayout& layout = shape.function->getParent()->getDataLayout();
  for (Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(*shape.function))) {
    auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
    if (load == nullptr || load->getParent() == shape.prologue || load->isVolatile()) continue;
    llvm::APInt offset(64, 0);
    Value* base =
        load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, offset, true);
    auto* field = llvm::dyn_cast<llvm::LoadInst>(base);
    if (field == nullptr || field->getParent() != shape.prologue) continue;
    llvm::APInt at(64, 0);
    Value* owner = field->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, at, true);
    if (owner != shape.context || at.getZExtValue() != offsetof(BlockContext, parameters)) continue;
    IRBuilder<> builder(shape.prologue->getTerminator());
    Value* address = builder.CreateInBoundsGEP(builder.getInt8Ty(), field,
                                               builder.getInt64(offset.getSExtValue()));
    llvm::LoadInst* moved = builder.CreateAlignedLoad(load->getType(), address, load->getAlign());
    moved->setMetadata(llvm::LLVMContext::MD_invariant_load,
                       llvm::MDNode::get(builder.getContext(), {}));
    load->replaceAllUsesWith(moved);
    load->eraseFromParent();
  }
}

bool IsBlockPrivate(const Shape& shape, Value* pointer) {
  const llvm::DataLayout& layout = shape.function->getParent()->getDataLayout();
  auto* field = llvm::dyn_cast<llvm::LoadInst>(llvm::getUnderlyingObject(pointer, 0));
  if (field == nullptr || field->getParent() != shape.prologue) return false;
  llvm::APInt at(64, 0);
  Value* owner = field->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, at, true);
  uint64_t offset = at.getZExtValue();
  return owner == shape.context &&
         (offset == offsetof(BlockContext, shared) || offset == offsetof(BlockContext, scratch));
}

// A block stays on one operating system thread, so its shared memory needs no atomic instruction;
// but each thread's access then depends on the one before.
void LowerSharedAtomics(Shape& shape) {
  llvm::MDNode* mark = llvm::MDNode::get(shape.function->getContext(), {});
  for (Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(*shape.function))) {
    auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction);
    auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction);
    if (update == nullptr && exchange == nullptr) continue;
    Value* pointer =
        update != nullptr ? update->getPointerOperand() : exchange->getPointerOperand();
    if (!IsBlockPrivate(shape, pointer)) continue;
    Instruction* before = instruction.getPrevNode();
    Instruction* after = instruction.getNextNode();
    BasicBlock* block = instruction.getParent();
    if (update != nullptr) {
      llvm::lowerAtomicRMWInst(update);
    } else {
      llvm::lowerAtomicCmpXchgInst(exchange);
    }
    for (auto at = before == nullptr ? block->begin() : std::next(before->getIterator());
         &*at != after; ++at) {
      if (at->mayReadOrWriteMemory()) at->setMetadata(kSerial, mark);
    }
  }
}

// The result of kWaitWarp when all threads of the block reach it together: the lanes of the warp
// that the mask names (0: all) and that the block has.
Value* PresentLanes(IRBuilder<>& builder, Shape& shape, Value* mask) {
  Value* threads =
      builder.CreateMul(builder.CreateMul(shape.block[0], shape.block[1], "", true, true),
                        shape.block[2], "", true, true);
  Value* first = builder.CreateAnd(shape.thread[3], builder.getInt32(~31u));
  Value* count = builder.CreateSub(threads, first);
  Value* last =
      builder.CreateShl(builder.getInt64(1), builder.CreateZExt(count, builder.getInt64Ty()));
  Value* few =
      builder.CreateTrunc(builder.CreateSub(last, builder.getInt64(1)), builder.getInt32Ty());
  Value* all = builder.getInt32(~0u);
  Value* there = builder.CreateSelect(builder.CreateICmpULT(count, builder.getInt32(32)), few, all);
  Value* named = builder.CreateSelect(builder.CreateICmpEQ(mask, builder.getInt32(0)), all, mask);
  return builder.CreateAnd(there, named);
}

absl::Status SplitAtCuts(Shape& shape) {
  std::vector<CallInst*> calls;
  for (Instruction& instruction : llvm::instructions(*shape.function)) {
    llvm::StringRef name = CalleeName(instruction);
    if (name == kCut || name == kSlot || name == kSlotClear || name == kWaitWarp || name == kInStep)
      calls.push_back(llvm::cast<CallInst>(&instruction));
  }
  for (CallInst* call : calls) {
    llvm::StringRef name = CalleeName(*call);
    Value* array = nullptr;
    uint64_t bytes = 0;
    if (name == kWaitWarp) {
      shape.has_warp_wait = true;
      IRBuilder<> builder(call);
      builder.SetInsertPoint(call->getNextNode());
      call->replaceAllUsesWith(PresentLanes(builder, shape, call->getArgOperand(0)));
    } else if (name != kCut && name != kInStep) {
      auto* size = llvm::dyn_cast<llvm::ConstantInt>(call->getArgOperand(0));
      if (size == nullptr) return absl::InternalError("a slot with no constant size");
      bytes = size->getZExtValue();
      array = shape.AllocateArray(bytes, "slot");
      call->replaceAllUsesWith(array);
    }
    if (name != kSlot) {
      shape.has_barrier = true;
      BasicBlock* after = call->getParent()->splitBasicBlock(call, "cut");
      shape.cuts.insert(after);
      if (name == kSlotClear) shape.clears[after].emplace_back(array, bytes);
    }
    call->eraseFromParent();
  }
  return absl::OkStatus();
}

// The launcher refuses launches in which blockIdx * blockDim + threadIdx could reach 2^31.
void MarkNoWrap(Shape& shape) {
  for (int axis = 0; axis < 3; ++axis) {
    for (llvm::User* user : shape.thread[axis]->users()) {
      auto* add = llvm::dyn_cast<llvm::BinaryOperator>(user);
      if (add == nullptr || add->getOpcode() != Instruction::Add) continue;
      Value* other =
          add->getOperand(0) == shape.thread[axis] ? add->getOperand(1) : add->getOperand(0);
      auto* product = llvm::dyn_cast<llvm::BinaryOperator>(other);
      if (product == nullptr || product->getOpcode() != Instruction::Mul) continue;
      bool block = product->getOperand(0) == shape.block[axis] ||
                   product->getOperand(1) == shape.block[axis];
      Value* index = product->getOperand(0) == shape.block[axis] ? product->getOperand(1)
                                                                 : product->getOperand(0);
      auto* load = llvm::dyn_cast<llvm::LoadInst>(index);
      if (!block || load == nullptr || load->getParent() != shape.prologue) continue;
      llvm::APInt at(64, 0);
      const llvm::DataLayout& layout = shape.function->getParent()->getDataLayout();
      Value* owner = load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, at, true);
      if (owner != shape.context ||
          at.getZExtValue() != offsetof(BlockContext, block_index) + 4u * axis)
        continue;
      for (llvm::BinaryOperator* exact : {add, product}) {
        exact->setHasNoSignedWrap();
        exact->setHasNoUnsignedWrap();
      }
    }
  }
}

bool IsInPrologue(const Shape& shape, const Value* value) {
  const auto* instruction = llvm::dyn_cast<Instruction>(value);
  return instruction == nullptr || instruction->getParent() == shape.prologue;
}

// Values that depend on the block's fields and the parameters alone, such as a grid's stride, are
// computed once for the block.
void HoistUniform(Shape& shape) {
  llvm::ReversePostOrderTraversal<llvm::Function*> order(shape.function);
  for (BasicBlock* block : order) {
    if (block == shape.prologue) continue;
    for (Instruction& instruction : llvm::make_early_inc_range(*block)) {
      if (llvm::isa<llvm::PHINode, llvm::CallBase>(instruction) || instruction.isTerminator() ||
          instruction.mayReadOrWriteMemory() || !llvm::isSafeToSpeculativelyExecute(&instruction))
        continue;
      const bool known = llvm::all_of(instruction.operands(),
                                      [&](Value* operand) { return IsInPrologue(shape, operand); });
      if (known) instruction.moveBefore(shape.prologue->getTerminator());
    }
  }
}

}  // namespace

absl::StatusOr<Shape> NormalizePerThread(llvm::Function& old) {
  Shape shape;
  shape.function = AddContextArgument(old);
  RemoveMarkers(*shape.function);
  MakePrologue(shape);
  MergeReturns(shape);
  if (absl::Status status = HoistFields(shape); !status.ok()) return status;
  HoistParameters(shape);
  return shape;
}

absl::StatusOr<Shape> Normalize(llvm::Function& old) {
  absl::StatusOr<Shape> shape = NormalizePerThread(old);
  if (!shape.ok()) return shape.status();
  InterleavePrivateArrays(*shape);
  if (absl::Status status = MovePrivateArrays(*shape, 0); !status.ok()) return status;
  if (absl::Status status = SplitAtCuts(*shape); !status.ok()) return status;
  LowerSharedAtomics(*shape);
  MarkNoWrap(*shape);
  HoistUniform(*shape);
  return shape;
}

}  // namespace stride::cpucuda::spmd
