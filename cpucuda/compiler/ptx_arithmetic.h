#pragma once

#include <cstdint>

#include "cpucuda/compiler/ptx_registers.h"
#include "cpucuda/compiler/ptx_text.h"
#include "cpucuda/compiler/ptx_type.h"
#include "llvm/IR/IRBuilder.h"

namespace stride::cpucuda {

// Comparisons, conversions and arithmetic, each before the statement's call.
class PtxArithmetic {
 public:
  // `registers` outlive it.
  explicit PtxArithmetic(PtxRegisters& registers)
      : registers_(registers), builder_(registers.builder()) {}

  // False for an instruction that the device does not have.
  bool LowerCompare(const PtxStatement& statement, PtxType type);
  bool LowerConvert(const PtxStatement& statement, PtxType from);
  // The value of an instruction with one result; null when it is not known. `result` is the type
  // that it has.
  llvm::Value* Compute(const PtxStatement& statement, PtxType type, PtxType* result);

 private:
  llvm::Value* RoundToInteger(const PtxStatement& statement, llvm::Value* value);
  llvm::Value* Carry();
  // a + b or a - b with the carry flag in and out.
  llvm::Value* AddWithCarry(llvm::Value* a, llvm::Value* b, bool subtract, bool in, bool out);
  // The lower, upper or both halves of a product.
  llvm::Value* Product(const PtxStatement& statement, PtxType type, llvm::Value* a, llvm::Value* b);
  // bfind: the place of the highest bit that is not the sign's, or how far it is from the top; all
  // ones where there is none.
  llvm::Value* HighestBit(llvm::Value* value, PtxType type, bool from_top);
  llvm::Value* Shift(llvm::Value* value, llvm::Value* count, PtxType type, bool left);
  llvm::Value* BitField(llvm::Value* from, llvm::Value* at, llvm::Value* count, PtxType type);
  llvm::Value* Permute(llvm::Value* a, llvm::Value* b, llvm::Value* selector);
  llvm::Value* Logic(llvm::Value* a, llvm::Value* b, llvm::Value* c, uint64_t table);

  PtxRegisters& registers_;
  llvm::IRBuilder<>& builder_;
  PtxRegisters::Slot carry_;
};

}  // namespace stride::cpucuda
