#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cpucuda/compiler/ptx_text.h"
#include "cpucuda/compiler/ptx_type.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"

namespace stride::cpucuda {

// The operands and registers of one statement of inline assembly, in places on the stack, and the
// special registers. Instructions are inserted by builder(), before `call`.
class PtxRegisters {
 public:
  struct Slot {
    llvm::Value* place = nullptr;  // an alloca
    llvm::Type* type = nullptr;
  };

  explicit PtxRegisters(llvm::CallInst* call);

  // $0, $1 and so on: outputs are places, inputs are values, also in places.
  absl::Status BindOperands();
  // Replaces the uses of the call by its outputs, and erases it.
  void Finish();

  llvm::IRBuilder<>& builder() { return builder_; }
  const std::string& text() const { return assembly_->getAsmString(); }
  // Whether the statement may write any memory.
  bool clobbers_memory() const { return clobbers_memory_; }

  Slot NewSlot(llvm::Type* type);
  // Declares the registers of `.reg`; false for an unknown type.
  bool Declare(const PtxStatement& statement);
  // The value of a register, special register or immediate as a type; null when it is not known.
  llvm::Value* Read(const std::string& given, PtxType type);
  llvm::Value* Read(const PtxOperand& operand, PtxType type);
  // False for an unknown register.
  bool Store(const std::string& name, llvm::Value* value, bool is_signed);
  // The value of an operand that is a constant of the program; false for another one.
  bool ConstantOperand(const std::string& name, uint64_t* value);

  llvm::Type* IrType(PtxType type);
  // The same bits as another type; an integer is cut or extended.
  llvm::Value* Recast(llvm::Value* value, llvm::Type* to, bool is_signed);
  // Calls a function of the runtime. `pure`: it reads and writes no memory.
  llvm::Value* Call(const char* name, llvm::Type* result, std::vector<llvm::Value*> arguments,
                    bool pure);
  // The address of the block's shared memory, as an integer.
  llvm::Value* SharedBase();

 private:
  // "${1:u}" is operand 1, too.
  static std::string Plain(const std::string& name);
  llvm::Value* Field(size_t offset);
  llvm::Value* Thread(const char* name);
  llvm::Value* SpecialRegister(absl::string_view name);
  llvm::Value* Immediate(absl::string_view text, PtxType type);

  llvm::CallInst* call_;
  llvm::IRBuilder<> builder_;
  llvm::Module& module_;
  llvm::InlineAsm* assembly_;
  std::map<std::string, Slot> slots_;  // operands and registers
  std::vector<std::string> outputs_;
  bool clobbers_memory_ = false;
};

}  // namespace stride::cpucuda
