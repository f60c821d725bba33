#include "server/worker/cpu/compiler/spmd/per_thread.h"

#include <cstddef>

#include "absl/status/status.h"
#include "llvm/IR/InstIterator.h"
#include "server/worker/cpu/compiler/spmd/kernel_shape.h"
#include "server/worker/cpu/compiler/spmd/normalize.h"
#include "server/worker/cpu/kernel/block_context.h"

namespace stride::cpu::spmd {
namespace {

using llvm::CallInst;
using llvm::IRBuilder;
using llvm::Value;

Value* Field(IRBuilder<>& builder, Value* context, uint64_t offset, llvm::Type* type) {
  return builder.CreateLoad(
      type, builder.CreateInBoundsGEP(builder.getInt8Ty(), context, builder.getInt64(offset)));
}

void Wait(IRBuilder<>& builder, Value* context, unsigned site, Value* whole_block) {
  Value* runtime = Field(builder, context, offsetof(BlockContext, runtime), builder.getPtrTy());
  Value* wait = Field(builder, runtime, offsetof(KernelRuntime, wait), builder.getPtrTy());
  auto* type = llvm::FunctionType::get(
      builder.getVoidTy(), {builder.getPtrTy(), builder.getInt32Ty(), builder.getInt1Ty()}, false);
  builder.CreateCall(type, wait, {context, builder.getInt32(site), whole_block});
}

}  // namespace

absl::Status MakePerThread(llvm::Function& function, uint64_t& bytes_per_thread,
                           bool& has_barrier) {
  absl::StatusOr<Shape> normal = NormalizePerThread(function);
  if (!normal.ok()) return normal.status();
  Shape& shape = *normal;
  unsigned site = 0;
  for (llvm::Instruction& instruction :
       llvm::make_early_inc_range(llvm::instructions(*shape.function))) {
    llvm::StringRef name = CalleeName(instruction);
    IRBuilder<> builder(&instruction);
    if (name == kCut) {
      has_barrier = true;
      Value* whole = builder.CreateICmpEQ(instruction.getOperand(0), builder.getInt32(0));
      Wait(builder, shape.context, ++site, whole);
      instruction.eraseFromParent();
    } else if (name == kSlot || name == kSlotClear) {
      uint64_t bytes = llvm::cast<llvm::ConstantInt>(instruction.getOperand(0))->getZExtValue();
      Value* array = shape.AllocateArray(bytes, "slot");
      if (name == kSlotClear) {
        // All threads have arrived, each clears its warp's part (threads that are elsewhere must
        // not seem present), and all have cleared.
        has_barrier = true;
        Value* warp = builder.getInt1(false);
        Wait(builder, shape.context, ++site, warp);
        Value* index = builder.CreateZExt(shape.thread[3], builder.getInt64Ty());
        Value* warp_start = builder.CreateAnd(index, builder.getInt64(~uint64_t{31}));
        Value* offset = builder.CreateMul(warp_start, builder.getInt64(bytes));
        builder.CreateMemSet(builder.CreateInBoundsGEP(builder.getInt8Ty(), array, offset),
                             builder.getInt8(0), 32 * bytes, llvm::MaybeAlign(1));
        Wait(builder, shape.context, ++site, warp);
      }
      instruction.replaceAllUsesWith(array);
      instruction.eraseFromParent();
    }
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

}  // namespace stride::cpu::spmd
