#pragma once

#include "cpucuda/compiler/ptx_registers.h"
#include "cpucuda/compiler/ptx_text.h"
#include "cpucuda/compiler/ptx_type.h"
#include "llvm/IR/IRBuilder.h"

namespace stride::cpucuda {

// Loads, stores, atomics and conversions of addresses, each before the statement's call. A lowering
// is false for an instruction that the device does not have.
class PtxMemory {
 public:
  // `registers` outlive it.
  explicit PtxMemory(PtxRegisters& registers)
      : registers_(registers), builder_(registers.builder()) {}

  bool LowerLoad(const PtxStatement& statement, PtxType type);
  bool LowerStore(const PtxStatement& statement, PtxType type);
  bool LowerAtomic(const PtxStatement& statement, PtxType type);
  bool LowerAddress(const PtxStatement& statement, PtxType type);

 private:
  // A 32-bit address of shared memory is an offset into the block's (__cvta_generic_to_shared).
  llvm::Value* Address(const PtxStatement& statement, const PtxOperand& operand);
  llvm::Value* At(llvm::Value* address, PtxType type, size_t i);

  PtxRegisters& registers_;
  llvm::IRBuilder<>& builder_;
};

}  // namespace stride::cpucuda
