#include "cpucuda/compiler/spmd/per_thread.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "cpucuda/compiler/spmd/kernel_shape.h"
#include "cpucuda/compiler/spmd/normalize.h"
#include "cpucuda/compiler/spmd/private_arrays.h"
#include "cpucuda/compiler/spmd/volatile_cuts.h"
#include "cpucuda/runtime/block_context.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"

namespace stride::cpucuda::spmd {
namespace {

using llvm::CallInst;
using llvm::IRBuilder;
using llvm::Value;

Value* Field(IRBuilder<>& builder, Value* context, uint64_t offset, llvm::Type* type) {
  return builder.CreateLoad(
      type, builder.CreateInBoundsGEP(builder.getInt8Ty(), context, builder.getInt64(offset)));
}

// A fiber's stack holds only small arrays.
constexpr uint64_t kMovedArrayBytes = 2048;

// The calls in the order in which fibers resume that wait for the active threads: those deepest in
// loops first, then the earliest, as in the loop form (see emit.cc).
std::vector<llvm::Instruction*> InOrderOfWaiting(llvm::Function& function) {
  llvm::DominatorTree dominators(function);
  llvm::LoopInfo loops(dominators);
  llvm::ReversePostOrderTraversal<llvm::Function*> order(&function);
  std::vector<llvm::BasicBlock*> blocks(order.begin(), order.end());
  std::stable_sort(blocks.begin(), blocks.end(), [&](llvm::BasicBlock* a, llvm::BasicBlock* b) {
    return loops.getLoopDepth(a) > loops.getLoopDepth(b);
  });
  std::vector<llvm::Instruction*> calls;
  for (llvm::BasicBlock* block : blocks) {
    for (llvm::Instruction& instruction : *block) {
      if (llvm::isa<CallInst>(instruction)) calls.push_back(&instruction);
    }
  }
  return calls;
}

// The lanes that continue together; unspecified for a wait of the whole block.
Value* Wait(IRBuilder<>& builder, Value* context, unsigned site, Value* mask, bool whole_block) {
  Value* runtime = Field(builder, context, offsetof(BlockContext, runtime), builder.getPtrTy());
  Value* wait = Field(builder, runtime, offsetof(KernelRuntime, wait), builder.getPtrTy());
  llvm::Type* word = builder.getInt32Ty();
  auto* type =
      llvm::FunctionType::get(word, {builder.getPtrTy(), word, word, builder.getInt1Ty()}, false);
  CallInst* call = builder.CreateCall(
      type, wait, {context, builder.getInt32(site), mask, builder.getInt1(whole_block)});
  // Moving or doubling the call would change who waits together.
  call->setConvergent();
  call->addFnAttr(llvm::Attribute::NoDuplicate);
  call->addParamAttr(3, llvm::Attribute::ZExt);
  return call;
}

void WaitForGrid(IRBuilder<>& builder, Value* context) {
  Value* runtime = Field(builder, context, offsetof(BlockContext, runtime), builder.getPtrTy());
  Value* wait = Field(builder, runtime, offsetof(KernelRuntime, wait_grid), builder.getPtrTy());
  auto* type = llvm::FunctionType::get(builder.getVoidTy(), {builder.getPtrTy()}, false);
  CallInst* call = builder.CreateCall(type, wait, {context});
  call->setConvergent();
  call->addFnAttr(llvm::Attribute::NoDuplicate);
}

// All threads have arrived, each clears its own part, and all have cleared. Threads count in the
// first part. Each thread clears it, because its own thread may have returned.
void ClearSlot(IRBuilder<>& builder, Shape& shape, Value* array, uint64_t bytes, unsigned& site) {
  Wait(builder, shape.context, ++site, builder.getInt32(0), true);
  Value* index = builder.CreateZExt(shape.thread[3], builder.getInt64Ty());
  Value* own = builder.CreateInBoundsGEP(builder.getInt8Ty(), array,
                                         builder.CreateMul(index, builder.getInt64(bytes)));
  builder.CreateMemSet(own, builder.getInt8(0), bytes, llvm::MaybeAlign(1));
  builder.CreateMemSet(array, builder.getInt8(0), bytes, llvm::MaybeAlign(1));
  Wait(builder, shape.context, ++site, builder.getInt32(0), true);
}

}  // namespace

absl::Status MakePerThread(llvm::Function& function, uint64_t& bytes_per_thread,
                           bool& has_barrier) {
  MeetInStep(function);
  absl::StatusOr<Shape> normal = NormalizePerThread(function);
  if (!normal.ok()) return normal.status();
  Shape& shape = *normal;
  if (absl::Status status = MovePrivateArrays(shape, kMovedArrayBytes); !status.ok()) return status;
  unsigned site = 0;
  for (llvm::Instruction* place : InOrderOfWaiting(*shape.function)) {
    llvm::Instruction& instruction = *place;
    llvm::StringRef name = CalleeName(instruction);
    bool waits = name == kCut || name == kWaitWarp || name == kWaitGrid || name == kInStep;
    if (!waits && name != kSlot && name != kSlotClear) continue;
    IRBuilder<> builder(&instruction);
    if (name != kSlot) has_barrier = true;
    Value* result = nullptr;
    if (name == kCut) {
      Wait(builder, shape.context, ++site, builder.getInt32(0), true);
    } else if (name == kWaitGrid) {
      WaitForGrid(builder, shape.context);
    } else if (name == kInStep) {
      Wait(builder, shape.context, ++site, builder.getInt32(0), false);
    } else if (name == kWaitWarp) {
      result = Wait(builder, shape.context, ++site, instruction.getOperand(0), false);
    } else {
      uint64_t bytes = llvm::cast<llvm::ConstantInt>(instruction.getOperand(0))->getZExtValue();
      result = shape.AllocateArray(bytes, "slot");
      if (name == kSlotClear) ClearSlot(builder, shape, result, bytes, site);
    }
    if (result != nullptr) instruction.replaceAllUsesWith(result);
    instruction.eraseFromParent();
  }
  // Right after the calls, which are first in the thread's entry.
  IRBuilder<> builder(shape.thread[0]);
  Value* index[3];
  for (int i = 0; i < 3; ++i) {
    index[i] = Field(builder, shape.context, offsetof(BlockContext, thread_index) + 4 * i,
                     builder.getInt32Ty());
    shape.thread[i]->replaceAllUsesWith(index[i]);
  }
  Value* x = index[0];
  Value* y = index[1];
  Value* z = index[2];
  Value* plane = builder.CreateAdd(builder.CreateMul(z, shape.block[1]), y);
  shape.thread[3]->replaceAllUsesWith(
      builder.CreateAdd(builder.CreateMul(plane, shape.block[0]), x));
  for (CallInst* call : shape.thread) call->eraseFromParent();
  bytes_per_thread = shape.bytes_per_thread;
  return absl::OkStatus();
}

}  // namespace stride::cpucuda::spmd
