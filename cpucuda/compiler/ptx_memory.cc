#include "cpucuda/compiler/ptx_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "llvm/IR/Instructions.h"

namespace stride::cpucuda {
namespace {

using llvm::Value;

llvm::Align AlignOf(PtxType type) { return llvm::Align(std::max(type.bits / 8, 1u)); }

std::optional<llvm::AtomicRMWInst::BinOp> AtomicOperation(const PtxStatement& statement,
                                                          PtxType type) {
  using Rmw = llvm::AtomicRMWInst;
  if (Has(statement, "add")) return type.is_float() ? Rmw::FAdd : Rmw::Add;
  if (Has(statement, "min")) return type.is_signed() ? Rmw::Min : Rmw::UMin;
  if (Has(statement, "max")) return type.is_signed() ? Rmw::Max : Rmw::UMax;
  if (Has(statement, "and")) return Rmw::And;
  if (Has(statement, "or")) return Rmw::Or;
  if (Has(statement, "xor")) return Rmw::Xor;
  if (Has(statement, "exch")) return Rmw::Xchg;
  return std::nullopt;
}

}  // namespace

bool PtxMemory::LowerLoad(const PtxStatement& statement, PtxType type) {
  if (statement.operands.size() != 2) return false;
  Value* address = Address(statement, statement.operands[1]);
  if (address == nullptr) return false;
  const PtxOperand& to = statement.operands[0];
  for (size_t i = 0; i < to.parts.size(); ++i) {
    llvm::LoadInst* load = builder_.CreateAlignedLoad(registers_.IrType(type), At(address, type, i),
                                                      AlignOf(type), Has(statement, "volatile"));
    if (Has(statement, "acquire")) load->setAtomic(llvm::AtomicOrdering::Acquire);
    if (Has(statement, "relaxed")) load->setAtomic(llvm::AtomicOrdering::Monotonic);
    if (!registers_.Store(to.parts[i], load, type.is_signed())) return false;
  }
  return true;
}

bool PtxMemory::LowerStore(const PtxStatement& statement, PtxType type) {
  if (statement.operands.size() != 2) return false;
  Value* address = Address(statement, statement.operands[0]);
  if (address == nullptr) return false;
  const PtxOperand& from = statement.operands[1];
  for (size_t i = 0; i < from.parts.size(); ++i) {
    Value* value = registers_.Read(from.parts[i], type);
    if (value == nullptr) return false;
    llvm::StoreInst* store = builder_.CreateAlignedStore(value, At(address, type, i), AlignOf(type),
                                                         Has(statement, "volatile"));
    if (Has(statement, "release")) store->setAtomic(llvm::AtomicOrdering::Release);
    if (Has(statement, "relaxed")) store->setAtomic(llvm::AtomicOrdering::Monotonic);
  }
  return true;
}

bool PtxMemory::LowerAtomic(const PtxStatement& statement, PtxType type) {
  const bool returns = statement.opcode[0] == "atom";
  const size_t first = returns ? 1 : 0;
  const size_t count = statement.operands.size();
  const bool swaps = Has(statement, "cas");
  if (count != first + (swaps ? 3 : 2)) return false;
  Value* address = Address(statement, statement.operands[first]);
  Value* value = registers_.Read(statement.operands[first + 1], type);
  if (address == nullptr || value == nullptr) return false;
  const bool relaxed =
      !Has(statement, "acquire") && !Has(statement, "release") && !Has(statement, "acq_rel");
  const llvm::AtomicOrdering order =
      relaxed ? llvm::AtomicOrdering::Monotonic : llvm::AtomicOrdering::AcquireRelease;
  Value* old = nullptr;
  if (swaps) {
    Value* fresh = registers_.Read(statement.operands[first + 2], type);
    if (fresh == nullptr || type.is_float()) return false;
    Value* pair =
        builder_.CreateAtomicCmpXchg(address, value, fresh, AlignOf(type), order,
                                     llvm::AtomicCmpXchgInst::getStrongestFailureOrdering(order));
    old = builder_.CreateExtractValue(pair, 0);
  } else {
    auto operation = AtomicOperation(statement, type);
    if (!operation) return false;
    old = builder_.CreateAtomicRMW(*operation, address, value, AlignOf(type), order);
  }
  return !returns || registers_.Store(statement.operands[0].parts[0], old, type.is_signed());
}

bool PtxMemory::LowerAddress(const PtxStatement& statement, PtxType type) {
  Value* value =
      statement.operands.size() == 2 ? registers_.Read(statement.operands[1], {'u', 64}) : nullptr;
  if (value == nullptr) return false;
  if (Has(statement, "shared")) {
    value = Has(statement, "to") ? builder_.CreateSub(value, registers_.SharedBase())
                                 : builder_.CreateAdd(value, registers_.SharedBase());
  }
  return registers_.Store(statement.operands[0].parts[0],
                          registers_.Recast(value, registers_.IrType(type), false), false);
}

Value* PtxMemory::Address(const PtxStatement& statement, const PtxOperand& operand) {
  if (!operand.is_address) return nullptr;
  Value* address = registers_.Read(operand.parts[0], {'u', 64});
  if (address == nullptr) return nullptr;
  int64_t offset = 0;
  if (!operand.offset.empty() &&
      !absl::SimpleAtoi(absl::StripPrefix(operand.offset, "+"), &offset)) {
    return nullptr;
  }
  if (Has(statement, "shared") || Has(statement, "shared::cta"))
    address = builder_.CreateAdd(address, registers_.SharedBase());
  address = builder_.CreateAdd(address, builder_.getInt64(static_cast<uint64_t>(offset)));
  return builder_.CreateIntToPtr(address, builder_.getPtrTy());
}

Value* PtxMemory::At(Value* address, PtxType type, size_t i) {
  return builder_.CreateConstGEP1_64(builder_.getInt8Ty(), address, i * type.bits / 8);
}

}  // namespace stride::cpucuda
