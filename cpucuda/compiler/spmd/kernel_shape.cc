#include "cpucuda/compiler/spmd/kernel_shape.h"

namespace stride::cpucuda::spmd {

llvm::StringRef CalleeName(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  if (call == nullptr || call->getCalledFunction() == nullptr) return "";
  return call->getCalledFunction()->getName();
}

bool IsThreadIndex(const llvm::Value* value) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(value);
  return call != nullptr && CalleeName(*call).starts_with("__stride_tid_");
}

llvm::Value* Shape::AllocateArray(uint64_t bytes, const llvm::Twine& name) {
  llvm::IRBuilder<> builder(prologue->getTerminator());
  llvm::Value* offset =
      builder.CreateMul(rounded_threads, builder.getInt64(bytes_per_thread), "", true, true);
  bytes_per_thread += bytes;
  return builder.CreateInBoundsGEP(builder.getInt8Ty(), scratch, offset, name);
}

}  // namespace stride::cpucuda::spmd
