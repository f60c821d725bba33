#include "cpucuda/compiler/inline_ptx.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cpucuda/compiler/ptx_arithmetic.h"
#include "cpucuda/compiler/ptx_memory.h"
#include "cpucuda/compiler/ptx_registers.h"
#include "cpucuda/compiler/ptx_text.h"
#include "cpucuda/compiler/ptx_type.h"
#include "cpucuda/compiler/spmd/kernel_shape.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace stride::cpucuda {
namespace {

using llvm::CallInst;
using llvm::Value;

absl::Status Missing(const PtxStatement& statement) {
  return absl::UnimplementedError(
      absl::StrCat("the CPU device has no inline PTX `", statement.text, "`"));
}

// One statement of inline assembly, replaced before `call`.
class AsmLowering {
 public:
  explicit AsmLowering(CallInst* call) : call_(call), registers_(call) {}

  absl::Status Run() {
    if (absl::Status status = registers_.BindOperands(); !status.ok()) return status;
    for (const PtxStatement& statement : ParsePtx(registers_.text())) {
      builder_.SetInsertPoint(call_);
      if (!statement.guard.empty() && !EnterGuard(statement)) return Missing(statement);
      if (!Lower(statement)) return Missing(statement);
    }
    builder_.SetInsertPoint(call_);
    if (registers_.clobbers_memory()) {
      builder_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent,
                           llvm::SyncScope::SingleThread);
    }
    registers_.Finish();
    return absl::OkStatus();
  }

 private:
  bool EnterGuard(const PtxStatement& statement) {
    Value* condition = registers_.Read(statement.guard, {'p', 1});
    if (condition == nullptr) return false;
    if (statement.guard_negated) condition = builder_.CreateNot(condition);
    llvm::Instruction* inside = llvm::SplitBlockAndInsertIfThen(condition, call_, false);
    builder_.SetInsertPoint(inside);
    return true;
  }

  bool Lower(const PtxStatement& statement) {
    const std::string& name = statement.opcode[0];
    if (absl::StartsWith(name, ".")) return registers_.Declare(statement);
    static const auto& kNothing = *new std::set<std::string>{
        "prefetch", "prefetchu", "nanosleep", "discard", "applypriority", "griddepcontrol"};
    if (kNothing.contains(name)) return true;
    if (name == "membar" || name == "fence") {
      builder_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
      return true;
    }
    if (name == "bar" || name == "barrier") return LowerBarrier(statement);
    std::optional<PtxType> type = TypeOf(statement.opcode.back());
    if (!type || statement.operands.empty()) return false;
    if (name == "mov") return LowerMove(statement, *type);
    if (name == "ld" || name == "ldu") return memory_.LowerLoad(statement, *type);
    if (name == "st") return memory_.LowerStore(statement, *type);
    if (name == "atom" || name == "red") return memory_.LowerAtomic(statement, *type);
    if (name == "setp") return arithmetic_.LowerCompare(statement, *type);
    if (name == "cvt") return arithmetic_.LowerConvert(statement, *type);
    if (name == "cvta") return memory_.LowerAddress(statement, *type);
    PtxType result = *type;
    Value* value = arithmetic_.Compute(statement, *type, &result);
    if (value == nullptr) return false;
    return registers_.Store(statement.operands[0].parts[0], value, result.is_signed());
  }

  bool LowerBarrier(const PtxStatement& statement) {
    if (Has(statement, "warp")) {
      Value* mask =
          statement.operands.empty() ? nullptr : registers_.Read(statement.operands[0], {'b', 32});
      if (mask == nullptr) return false;
      registers_.Call(spmd::kWaitWarp, builder_.getInt32Ty(), {mask}, false);
      return true;
    }
    const bool whole = statement.operands.empty() ||
                       (statement.operands.size() == 1 && statement.operands[0].parts[0] == "0");
    if (!Has(statement, "sync") || !whole) return false;
    registers_.Call(spmd::kCut, builder_.getVoidTy(), {}, false);
    return true;
  }

  // Also between one wide register and its parts.
  bool LowerMove(const PtxStatement& statement, PtxType type) {
    if (statement.operands.size() != 2) return false;
    const PtxOperand& to = statement.operands[0];
    const PtxOperand& from = statement.operands[1];
    if (to.is_vector == from.is_vector) {
      Value* value = registers_.Read(from, type);
      return value != nullptr && !to.is_vector &&
             registers_.Store(to.parts[0], value, type.is_signed());
    }
    const unsigned count = static_cast<unsigned>((to.is_vector ? to : from).parts.size());
    const PtxType part{'b', type.bits / count};
    llvm::Type* whole = builder_.getIntNTy(type.bits);
    if (to.is_vector) {
      Value* value = registers_.Read(from, {'b', type.bits});
      if (value == nullptr) return false;
      for (unsigned i = 0; i < count; ++i) {
        Value* shifted = builder_.CreateLShr(value, uint64_t{i} * part.bits);
        if (!registers_.Store(to.parts[i], builder_.CreateTrunc(shifted, registers_.IrType(part)),
                              false))
          return false;
      }
      return true;
    }
    Value* sum = llvm::ConstantInt::get(whole, 0);
    for (unsigned i = 0; i < count; ++i) {
      Value* value = registers_.Read(from.parts[i], part);
      if (value == nullptr) return false;
      sum = builder_.CreateOr(
          sum, builder_.CreateShl(builder_.CreateZExt(value, whole), uint64_t{i} * part.bits));
    }
    return registers_.Store(to.parts[0], sum, false);
  }

  CallInst* call_;
  PtxRegisters registers_;
  llvm::IRBuilder<>& builder_ = registers_.builder();
  PtxMemory memory_{registers_};
  PtxArithmetic arithmetic_{registers_};
};

}  // namespace

absl::Status LowerInlinePtx(llvm::Module& module) {
  if (!module.getModuleInlineAsm().empty()) {
    return absl::UnimplementedError("the CPU device has no inline PTX outside of a function");
  }
  std::vector<llvm::CallBase*> calls;
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      if (call != nullptr && call->isInlineAsm()) calls.push_back(call);
    }
  }
  for (llvm::CallBase* base : calls) {
    auto* call = llvm::dyn_cast<CallInst>(base);
    if (call == nullptr)
      return absl::UnimplementedError("the CPU device has no inline PTX with labels (asm goto)");
    if (absl::Status status = AsmLowering(call).Run(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace stride::cpucuda
