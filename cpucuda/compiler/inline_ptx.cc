#include "cpucuda/compiler/inline_ptx.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cpucuda/compiler/ptx_text.h"
#include "cpucuda/compiler/spmd/kernel_shape.h"
#include "cpucuda/runtime/block_context.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace stride::cpucuda {
namespace {

using llvm::CallInst;
using llvm::Value;

// A PTX type: u32, s64, f32, b16, pred.
struct PtxType {
  char kind = 'b';
  unsigned bits = 32;
  bool is_signed() const { return kind == 's'; }
  bool is_float() const { return kind == 'f'; }
};

std::optional<PtxType> TypeOf(absl::string_view name) {
  if (name == "pred") return PtxType{'p', 1};
  PtxType type;
  int bits = 0;
  if (name.size() < 2 || !absl::SimpleAtoi(name.substr(1), &bits)) return std::nullopt;
  type.kind = name[0];
  type.bits = static_cast<unsigned>(bits);
  bool integer = type.kind == 'u' || type.kind == 's' || type.kind == 'b';
  if (integer && (bits == 8 || bits == 16 || bits == 32 || bits == 64)) return type;
  if (type.kind == 'f' && (bits == 32 || bits == 64)) return type;
  return std::nullopt;
}

absl::Status Missing(const PtxStatement& statement) {
  return absl::UnimplementedError(
      absl::StrCat("the CPU device has no inline PTX `", statement.text, "`"));
}

// One statement of inline assembly, replaced before `call`.
class AsmLowering {
 public:
  explicit AsmLowering(CallInst* call)
      : call_(call),
        builder_(call),
        module_(*call->getModule()),
        assembly_(llvm::cast<llvm::InlineAsm>(call->getCalledOperand())) {}

  absl::Status Run() {
    if (absl::Status status = BindOperands(); !status.ok()) return status;
    for (const PtxStatement& statement : ParsePtx(assembly_->getAsmString())) {
      builder_.SetInsertPoint(call_);
      if (!statement.guard.empty() && !EnterGuard(statement)) return Missing(statement);
      if (!Lower(statement)) return Missing(statement);
    }
    builder_.SetInsertPoint(call_);
    if (clobbers_memory_) {
      builder_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent,
                           llvm::SyncScope::SingleThread);
    }
    Finish();
    return absl::OkStatus();
  }

 private:
  struct Slot {
    Value* place = nullptr;  // an alloca
    llvm::Type* type = nullptr;
  };

  Slot NewSlot(llvm::Type* type) {
    llvm::BasicBlock& entry = call_->getFunction()->getEntryBlock();
    llvm::IRBuilder<> top(&entry, entry.begin());
    Slot slot{top.CreateAlloca(type), type};
    builder_.CreateStore(llvm::Constant::getNullValue(type), slot.place);
    return slot;
  }

  // $0, $1 and so on: outputs are places, inputs are values, also in places.
  absl::Status BindOperands() {
    unsigned number = 0, argument = 0, output = 0;
    std::vector<Slot*> outputs;
    for (const llvm::InlineAsm::ConstraintInfo& constraint : assembly_->ParseConstraints()) {
      if (constraint.Type == llvm::InlineAsm::isClobber) {
        for (const std::string& code : constraint.Codes)
          clobbers_memory_ = clobbers_memory_ || code == "{memory}";
        continue;
      }
      if (constraint.isIndirect || constraint.Type == llvm::InlineAsm::isLabel) {
        return absl::UnimplementedError(
            "the CPU device has no inline PTX with operands in memory; use \"r\", \"l\", \"f\" or "
            "\"d\"");
      }
      std::string name = absl::StrCat("$", number++);
      if (constraint.Type == llvm::InlineAsm::isOutput) {
        auto* types = llvm::dyn_cast<llvm::StructType>(call_->getType());
        llvm::Type* type = types != nullptr ? types->getElementType(output) : call_->getType();
        ++output;
        slots_[name] = NewSlot(type);
        outputs_.push_back(name);
        continue;
      }
      Value* value = call_->getArgOperand(argument++);
      slots_[name] = NewSlot(value->getType());
      builder_.CreateStore(value, slots_[name].place);
      if (constraint.hasMatchingInput() || constraint.MatchingInput >= 0) continue;
      for (const std::string& code : constraint.Codes) {
        unsigned tied = 0;
        if (!absl::SimpleAtoi(code, &tied)) continue;
        Store(absl::StrCat("$", tied), value, false);
      }
    }
    return absl::OkStatus();
  }

  bool EnterGuard(const PtxStatement& statement) {
    Value* condition = Read(statement.guard, {'p', 1});
    if (condition == nullptr) return false;
    if (statement.guard_negated) condition = builder_.CreateNot(condition);
    llvm::Instruction* inside = llvm::SplitBlockAndInsertIfThen(condition, call_, false);
    builder_.SetInsertPoint(inside);
    return true;
  }

  void Finish() {
    if (outputs_.size() == 1 && !call_->getType()->isStructTy()) {
      Slot& slot = slots_[outputs_[0]];
      call_->replaceAllUsesWith(builder_.CreateLoad(slot.type, slot.place));
    } else if (!outputs_.empty()) {
      Value* all = llvm::PoisonValue::get(call_->getType());
      for (unsigned i = 0; i < outputs_.size(); ++i) {
        Slot& slot = slots_[outputs_[i]];
        all = builder_.CreateInsertValue(all, builder_.CreateLoad(slot.type, slot.place), i);
      }
      call_->replaceAllUsesWith(all);
    }
    call_->eraseFromParent();
  }

  llvm::Type* IrType(PtxType type) {
    if (type.is_float()) return type.bits == 64 ? builder_.getDoubleTy() : builder_.getFloatTy();
    return builder_.getIntNTy(type.bits);
  }

  // The same bits as another type; an integer is cut or extended.
  Value* Recast(Value* value, llvm::Type* to, bool is_signed) {
    llvm::Type* from = value->getType();
    if (from == to) return value;
    if (from->isPointerTy()) {
      value = builder_.CreatePtrToInt(value, builder_.getInt64Ty());
    } else if (from->isFloatingPointTy()) {
      value = builder_.CreateBitCast(value, builder_.getIntNTy(from->getPrimitiveSizeInBits()));
    }
    llvm::Type* whole = to;
    if (to->isPointerTy()) whole = builder_.getInt64Ty();
    if (to->isFloatingPointTy()) whole = builder_.getIntNTy(to->getPrimitiveSizeInBits());
    value = builder_.CreateIntCast(value, whole, is_signed);
    if (to->isPointerTy()) return builder_.CreateIntToPtr(value, to);
    return to->isFloatingPointTy() ? builder_.CreateBitCast(value, to) : value;
  }

  bool Store(const std::string& name, Value* value, bool is_signed) {
    if (name == "_") return true;
    auto found = slots_.find(Plain(name));
    if (found == slots_.end()) return false;
    builder_.CreateStore(Recast(value, found->second.type, is_signed), found->second.place);
    return true;
  }

  // "${1:u}" is operand 1, too.
  static std::string Plain(const std::string& name) {
    if (!absl::StartsWith(name, "${")) return name;
    return absl::StrCat("$", name.substr(2, name.find_first_of(":}") - 2));
  }

  Value* Call(const char* name, llvm::Type* result, std::vector<Value*> arguments, bool pure) {
    std::vector<llvm::Type*> types;
    for (Value* argument : arguments) types.push_back(argument->getType());
    auto callee = module_.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false));
    auto* function = llvm::cast<llvm::Function>(callee.getCallee());
    function->setDoesNotThrow();
    if (pure) {
      function->setDoesNotAccessMemory();
      function->setWillReturn();
    } else {
      function->setConvergent();
      function->addFnAttr(llvm::Attribute::NoDuplicate);
    }
    CallInst* call = builder_.CreateCall(callee, arguments);
    if (!pure) call->setConvergent();
    return call;
  }
  Value* Field(size_t offset) {
    return Call(spmd::kField, builder_.getInt32Ty(),
                {builder_.getInt32(static_cast<uint32_t>(offset))}, true);
  }
  Value* Thread(const char* name) { return Call(name, builder_.getInt32Ty(), {}, true); }
  Value* SharedBase() {
    Value* base = Call(spmd::kPointer, builder_.getPtrTy(),
                       {builder_.getInt32(offsetof(BlockContext, shared))}, true);
    return builder_.CreatePtrToInt(base, builder_.getInt64Ty());
  }

  Value* SpecialRegister(absl::string_view name) {
    auto word = [&](uint32_t value) { return builder_.getInt32(value); };
    auto lane = [&] { return builder_.CreateAnd(Thread(spmd::kThreadLinear), word(31)); };
    auto below = [&] { return builder_.CreateSub(builder_.CreateShl(word(1), lane()), word(1)); };
    auto warps = [&] {
      Value* threads =
          builder_.CreateMul(builder_.CreateMul(Field(offsetof(BlockContext, block)),
                                                Field(offsetof(BlockContext, block) + 4)),
                             Field(offsetof(BlockContext, block) + 8));
      return builder_.CreateLShr(builder_.CreateAdd(threads, word(31)), word(5));
    };
    if (name == "laneid") return lane();
    if (name == "warpid") return builder_.CreateLShr(Thread(spmd::kThreadLinear), word(5));
    if (name == "nwarpid") return warps();
    if (name == "lanemask_lt") return below();
    if (name == "lanemask_eq") return builder_.CreateShl(word(1), lane());
    if (name == "lanemask_le")
      return builder_.CreateOr(below(), builder_.CreateShl(word(1), lane()));
    if (name == "lanemask_ge") return builder_.CreateNot(below());
    if (name == "lanemask_gt")
      return builder_.CreateNot(builder_.CreateOr(below(), builder_.CreateShl(word(1), lane())));
    // The value of %smid: one multiprocessor runs all blocks.
    if (name == "smid" || name == "gridid") return word(0);
    if (name == "nsmid") return word(1);
    if (name == "clock" || name == "clock64" || name == "clock_hi" || name == "globaltimer" ||
        name == "globaltimer_lo" || name == "globaltimer_hi") {
      Value* ticks = builder_.CreateIntrinsic(llvm::Intrinsic::readcyclecounter, {}, {});
      return absl::EndsWith(name, "_hi") ? builder_.CreateLShr(ticks, 32) : ticks;
    }
    size_t dot = name.find('.');
    if (dot == absl::string_view::npos || dot + 2 != name.size()) return nullptr;
    const int axis = name[dot + 1] - 'x';
    if (axis < 0 || axis > 2) return nullptr;
    const absl::string_view base = name.substr(0, dot);
    const char* threads[] = {spmd::kThreadX, spmd::kThreadY, spmd::kThreadZ};
    if (base == "tid") return Thread(threads[axis]);
    if (base == "ntid") return Field(offsetof(BlockContext, block) + 4 * axis);
    if (base == "ctaid") return Field(offsetof(BlockContext, block_index) + 4 * axis);
    if (base == "nctaid") return Field(offsetof(BlockContext, grid) + 4 * axis);
    return nullptr;
  }

  Value* Immediate(absl::string_view text, PtxType type) {
    if (absl::StartsWith(text, "0f") || absl::StartsWith(text, "0F") ||
        absl::StartsWith(text, "0d") || absl::StartsWith(text, "0D")) {
      uint64_t bits = 0;
      if (!absl::SimpleHexAtoi(text.substr(2), &bits)) return nullptr;
      const bool single = text[1] == 'f' || text[1] == 'F';
      if (type.bits != (single ? 32u : 64u)) return nullptr;
      return Recast(builder_.getIntN(type.bits, bits), IrType(type), false);
    }
    if (text == "WARP_SZ") return Recast(builder_.getInt64(32), IrType(type), false);
    double real = 0;
    if (type.is_float()) {
      return absl::SimpleAtod(text, &real) ? llvm::ConstantFP::get(IrType(type), real) : nullptr;
    }
    const bool negative = absl::ConsumePrefix(&text, "-");
    absl::ConsumeSuffix(&text, "U");
    uint64_t magnitude = 0;
    const bool hexadecimal = absl::StartsWith(text, "0x") || absl::StartsWith(text, "0X");
    if (hexadecimal ? !absl::SimpleHexAtoi(text, &magnitude) : !absl::SimpleAtoi(text, &magnitude))
      return nullptr;
    return builder_.CreateIntCast(builder_.getInt64(negative ? 0 - magnitude : magnitude),
                                  IrType(type), false);
  }

  Value* Read(const std::string& given, PtxType type) {
    std::string name = Plain(given);
    const bool negated = type.kind == 'p' && absl::StartsWith(name, "!");
    if (negated) name = name.substr(1);
    Value* value = nullptr;
    if (auto found = slots_.find(name); found != slots_.end()) {
      value = builder_.CreateLoad(found->second.type, found->second.place);
    } else if (absl::StartsWith(name, "%")) {
      value = SpecialRegister(absl::string_view(name).substr(1));
    } else {
      return Immediate(name, type);
    }
    if (value == nullptr) return nullptr;
    value = Recast(value, IrType(type), type.is_signed());
    return negated ? builder_.CreateNot(value) : value;
  }
  Value* Read(const PtxOperand& operand, PtxType type) {
    if (operand.is_address || operand.parts.size() != 1) return nullptr;
    return Read(operand.parts[0], type);
  }

  bool Declare(const PtxStatement& statement) {
    std::optional<PtxType> type = TypeOf(statement.opcode[1]);
    if (statement.opcode[0] != ".reg" || !type) return false;
    for (const PtxOperand& operand : statement.operands) {
      std::string name = operand.parts[0];
      int count = -1;
      // `t<4>` stands for t0 to t3.
      if (size_t at = name.find('<'); at != std::string::npos) {
        if (!absl::SimpleAtoi(name.substr(at + 1, name.size() - at - 2), &count) || count > 1024)
          return false;
        name.resize(at);
      }
      if (count < 0) slots_[name] = NewSlot(IrType(*type));
      for (int i = 0; i < count; ++i) slots_[absl::StrCat(name, i)] = NewSlot(IrType(*type));
    }
    return true;
  }

  static bool Has(const PtxStatement& statement, absl::string_view modifier) {
    return std::find(statement.opcode.begin() + 1, statement.opcode.end(), modifier) !=
           statement.opcode.end();
  }

  bool Lower(const PtxStatement& statement) {
    const std::string& name = statement.opcode[0];
    if (absl::StartsWith(name, ".")) return Declare(statement);
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
    if (name == "ld" || name == "ldu") return LowerLoad(statement, *type);
    if (name == "st") return LowerStore(statement, *type);
    if (name == "atom" || name == "red") return LowerAtomic(statement, *type);
    if (name == "setp") return LowerCompare(statement, *type);
    if (name == "cvt") return LowerConvert(statement, *type);
    if (name == "cvta") return LowerAddress(statement, *type);
    PtxType result = *type;
    Value* value = Compute(statement, *type, &result);
    if (value == nullptr) return false;
    return Store(statement.operands[0].parts[0], value, result.is_signed());
  }

  bool LowerBarrier(const PtxStatement& statement) {
    if (Has(statement, "warp")) {
      Value* mask = statement.operands.empty() ? nullptr : Read(statement.operands[0], {'b', 32});
      if (mask == nullptr) return false;
      Call(spmd::kWaitWarp, builder_.getInt32Ty(), {mask}, false);
      return true;
    }
    const bool whole = statement.operands.empty() ||
                       (statement.operands.size() == 1 && statement.operands[0].parts[0] == "0");
    if (!Has(statement, "sync") || !whole) return false;
    Call(spmd::kCut, builder_.getVoidTy(), {}, false);
    return true;
  }

  // Also between one wide register and its parts.
  bool LowerMove(const PtxStatement& statement, PtxType type) {
    if (statement.operands.size() != 2) return false;
    const PtxOperand& to = statement.operands[0];
    const PtxOperand& from = statement.operands[1];
    if (to.is_vector == from.is_vector) {
      Value* value = Read(from, type);
      return value != nullptr && !to.is_vector && Store(to.parts[0], value, type.is_signed());
    }
    const unsigned count = static_cast<unsigned>((to.is_vector ? to : from).parts.size());
    const PtxType part{'b', type.bits / count};
    llvm::Type* whole = builder_.getIntNTy(type.bits);
    if (to.is_vector) {
      Value* value = Read(from, {'b', type.bits});
      if (value == nullptr) return false;
      for (unsigned i = 0; i < count; ++i) {
        Value* shifted = builder_.CreateLShr(value, uint64_t{i} * part.bits);
        if (!Store(to.parts[i], builder_.CreateTrunc(shifted, IrType(part)), false)) return false;
      }
      return true;
    }
    Value* sum = llvm::ConstantInt::get(whole, 0);
    for (unsigned i = 0; i < count; ++i) {
      Value* value = Read(from.parts[i], part);
      if (value == nullptr) return false;
      sum = builder_.CreateOr(
          sum, builder_.CreateShl(builder_.CreateZExt(value, whole), uint64_t{i} * part.bits));
    }
    return Store(to.parts[0], sum, false);
  }

  // A 32-bit address of shared memory is an offset into the block's (__cvta_generic_to_shared).
  Value* Address(const PtxStatement& statement, const PtxOperand& operand) {
    if (!operand.is_address) return nullptr;
    Value* address = Read(operand.parts[0], {'u', 64});
    if (address == nullptr) return nullptr;
    int64_t offset = 0;
    if (!operand.offset.empty() &&
        !absl::SimpleAtoi(absl::StripPrefix(operand.offset, "+"), &offset)) {
      return nullptr;
    }
    if (Has(statement, "shared") || Has(statement, "shared::cta"))
      address = builder_.CreateAdd(address, SharedBase());
    address = builder_.CreateAdd(address, builder_.getInt64(static_cast<uint64_t>(offset)));
    return builder_.CreateIntToPtr(address, builder_.getPtrTy());
  }

  llvm::Align AlignOf(PtxType type) { return llvm::Align(std::max(type.bits / 8, 1u)); }
  Value* At(Value* address, PtxType type, size_t i) {
    return builder_.CreateConstGEP1_64(builder_.getInt8Ty(), address, i * type.bits / 8);
  }

  bool LowerLoad(const PtxStatement& statement, PtxType type) {
    if (statement.operands.size() != 2) return false;
    Value* address = Address(statement, statement.operands[1]);
    if (address == nullptr) return false;
    const PtxOperand& to = statement.operands[0];
    for (size_t i = 0; i < to.parts.size(); ++i) {
      llvm::LoadInst* load = builder_.CreateAlignedLoad(IrType(type), At(address, type, i),
                                                        AlignOf(type), Has(statement, "volatile"));
      if (Has(statement, "acquire")) load->setAtomic(llvm::AtomicOrdering::Acquire);
      if (Has(statement, "relaxed")) load->setAtomic(llvm::AtomicOrdering::Monotonic);
      if (!Store(to.parts[i], load, type.is_signed())) return false;
    }
    return true;
  }

  bool LowerStore(const PtxStatement& statement, PtxType type) {
    if (statement.operands.size() != 2) return false;
    Value* address = Address(statement, statement.operands[0]);
    if (address == nullptr) return false;
    const PtxOperand& from = statement.operands[1];
    for (size_t i = 0; i < from.parts.size(); ++i) {
      Value* value = Read(from.parts[i], type);
      if (value == nullptr) return false;
      llvm::StoreInst* store = builder_.CreateAlignedStore(
          value, At(address, type, i), AlignOf(type), Has(statement, "volatile"));
      if (Has(statement, "release")) store->setAtomic(llvm::AtomicOrdering::Release);
      if (Has(statement, "relaxed")) store->setAtomic(llvm::AtomicOrdering::Monotonic);
    }
    return true;
  }

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

  bool LowerAtomic(const PtxStatement& statement, PtxType type) {
    const bool returns = statement.opcode[0] == "atom";
    const size_t first = returns ? 1 : 0;
    const size_t count = statement.operands.size();
    const bool swaps = Has(statement, "cas");
    if (count != first + (swaps ? 3 : 2)) return false;
    Value* address = Address(statement, statement.operands[first]);
    Value* value = Read(statement.operands[first + 1], type);
    if (address == nullptr || value == nullptr) return false;
    const bool relaxed =
        !Has(statement, "acquire") && !Has(statement, "release") && !Has(statement, "acq_rel");
    const llvm::AtomicOrdering order =
        relaxed ? llvm::AtomicOrdering::Monotonic : llvm::AtomicOrdering::AcquireRelease;
    Value* old = nullptr;
    if (swaps) {
      Value* fresh = Read(statement.operands[first + 2], type);
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
    return !returns || Store(statement.operands[0].parts[0], old, type.is_signed());
  }

  bool LowerAddress(const PtxStatement& statement, PtxType type) {
    Value* value =
        statement.operands.size() == 2 ? Read(statement.operands[1], {'u', 64}) : nullptr;
    if (value == nullptr) return false;
    if (Has(statement, "shared")) {
      value = Has(statement, "to") ? builder_.CreateSub(value, SharedBase())
                                   : builder_.CreateAdd(value, SharedBase());
    }
    return Store(statement.operands[0].parts[0], Recast(value, IrType(type), false), false);
  }

  static std::optional<llvm::CmpInst::Predicate> PredicateOf(absl::string_view name, PtxType type) {
    using Cmp = llvm::CmpInst;
    struct Row {
      const char* name;
      Cmp::Predicate ordered, with_sign, without;
    };
    static constexpr Row kRows[] = {
        {"eq", Cmp::FCMP_OEQ, Cmp::ICMP_EQ, Cmp::ICMP_EQ},
        {"ne", Cmp::FCMP_ONE, Cmp::ICMP_NE, Cmp::ICMP_NE},
        {"lt", Cmp::FCMP_OLT, Cmp::ICMP_SLT, Cmp::ICMP_ULT},
        {"le", Cmp::FCMP_OLE, Cmp::ICMP_SLE, Cmp::ICMP_ULE},
        {"gt", Cmp::FCMP_OGT, Cmp::ICMP_SGT, Cmp::ICMP_UGT},
        {"ge", Cmp::FCMP_OGE, Cmp::ICMP_SGE, Cmp::ICMP_UGE},
        {"lo", Cmp::BAD_FCMP_PREDICATE, Cmp::BAD_ICMP_PREDICATE, Cmp::ICMP_ULT},
        {"ls", Cmp::BAD_FCMP_PREDICATE, Cmp::BAD_ICMP_PREDICATE, Cmp::ICMP_ULE},
        {"hi", Cmp::BAD_FCMP_PREDICATE, Cmp::BAD_ICMP_PREDICATE, Cmp::ICMP_UGT},
        {"hs", Cmp::BAD_FCMP_PREDICATE, Cmp::BAD_ICMP_PREDICATE, Cmp::ICMP_UGE},
        {"equ", Cmp::FCMP_UEQ, Cmp::BAD_ICMP_PREDICATE, Cmp::BAD_ICMP_PREDICATE},
        {"neu", Cmp::FCMP_UNE, Cmp::BAD_ICMP_PREDICATE, Cmp::BAD_ICMP_PREDICATE},
        {"ltu", Cmp::FCMP_ULT, Cmp::BAD_ICMP_PREDICATE, Cmp::BAD_ICMP_PREDICATE},
        {"leu", Cmp::FCMP_ULE, Cmp::BAD_ICMP_PREDICATE, Cmp::BAD_ICMP_PREDICATE},
        {"gtu", Cmp::FCMP_UGT, Cmp::BAD_ICMP_PREDICATE, Cmp::BAD_ICMP_PREDICATE},
        {"geu", Cmp::FCMP_UGE, Cmp::BAD_ICMP_PREDICATE, Cmp::BAD_ICMP_PREDICATE},
        {"nan", Cmp::FCMP_UNO, Cmp::BAD_ICMP_PREDICATE, Cmp::BAD_ICMP_PREDICATE},
        {"num", Cmp::FCMP_ORD, Cmp::BAD_ICMP_PREDICATE, Cmp::BAD_ICMP_PREDICATE}};
    for (const Row& row : kRows) {
      if (name != row.name) continue;
      Cmp::Predicate predicate = type.is_float()    ? row.ordered
                                 : type.is_signed() ? row.with_sign
                                                    : row.without;
      bool bad = predicate == Cmp::BAD_FCMP_PREDICATE || predicate == Cmp::BAD_ICMP_PREDICATE;
      return bad ? std::nullopt : std::make_optional(predicate);
    }
    return std::nullopt;
  }

  bool LowerCompare(const PtxStatement& statement, PtxType type) {
    const auto& opcode = statement.opcode;
    if (opcode.size() != 3 || statement.operands.size() != 3) return false;
    auto predicate = PredicateOf(opcode[1], type);
    Value* a = Read(statement.operands[1], type);
    Value* b = Read(statement.operands[2], type);
    if (!predicate || a == nullptr || b == nullptr) return false;
    // `p|q` also sets `q` to the opposite.
    const std::string& to = statement.operands[0].parts[0];
    Value* result = builder_.CreateCmp(*predicate, a, b);
    const size_t bar = to.find('|');
    if (bar == std::string::npos) return Store(to, result, false);
    return Store(to.substr(0, bar), result, false) &&
           Store(to.substr(bar + 1), builder_.CreateNot(result), false);
  }

  Value* RoundToInteger(const PtxStatement& statement, Value* value) {
    llvm::Intrinsic::ID id = llvm::Intrinsic::not_intrinsic;
    if (Has(statement, "rni")) id = llvm::Intrinsic::roundeven;
    if (Has(statement, "rzi")) id = llvm::Intrinsic::trunc;
    if (Has(statement, "rmi")) id = llvm::Intrinsic::floor;
    if (Has(statement, "rpi")) id = llvm::Intrinsic::ceil;
    return id == llvm::Intrinsic::not_intrinsic ? value : builder_.CreateUnaryIntrinsic(id, value);
  }

  bool LowerConvert(const PtxStatement& statement, PtxType from) {
    const auto& opcode = statement.opcode;
    if (opcode.size() < 3 || statement.operands.size() != 2) return false;
    std::optional<PtxType> to = TypeOf(opcode[opcode.size() - 2]);
    Value* value = Read(statement.operands[1], from);
    if (!to || value == nullptr) return false;
    // Other roundings of a float would need the processor's rounding mode.
    for (const char* mode : {"rz", "rm", "rp", "sat"}) {
      if (Has(statement, mode)) return false;
    }
    if (from.is_float() && to->is_float()) {
      value = builder_.CreateFPCast(RoundToInteger(statement, value), IrType(*to));
    } else if (from.is_float()) {
      // As PTX defines it, values out of range become the nearest number and NaN becomes zero.
      auto id = to->is_signed() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
      value = builder_.CreateIntrinsic(id, {IrType(*to), value->getType()},
                                       {RoundToInteger(statement, value)});
    } else if (to->is_float()) {
      value = from.is_signed() ? builder_.CreateSIToFP(value, IrType(*to))
                               : builder_.CreateUIToFP(value, IrType(*to));
    } else {
      value = builder_.CreateIntCast(value, IrType(*to), from.is_signed());
    }
    return Store(statement.operands[0].parts[0], value, to->is_signed());
  }

  Value* Carry() {
    if (carry_.place == nullptr) carry_ = NewSlot(builder_.getInt1Ty());
    return carry_.place;
  }

  // a + b or a - b with the carry flag in and out.
  Value* AddWithCarry(Value* a, Value* b, bool subtract, bool in, bool out) {
    auto id = subtract ? llvm::Intrinsic::usub_with_overflow : llvm::Intrinsic::uadd_with_overflow;
    Value* place = Carry();
    Value* sum = builder_.CreateBinaryIntrinsic(id, a, b);
    Value* result = builder_.CreateExtractValue(sum, 0);
    Value* flag = builder_.CreateExtractValue(sum, 1);
    if (in) {
      Value* before = builder_.CreateLoad(builder_.getInt1Ty(), place);
      Value* more = builder_.CreateBinaryIntrinsic(id, result,
                                                   builder_.CreateZExt(before, result->getType()));
      result = builder_.CreateExtractValue(more, 0);
      flag = builder_.CreateOr(flag, builder_.CreateExtractValue(more, 1));
    }
    if (out) builder_.CreateStore(flag, place);
    return result;
  }

  // The lower, upper or both halves of a product.
  Value* Product(const PtxStatement& statement, PtxType type, Value* a, Value* b) {
    llvm::Type* wide = builder_.getIntNTy(type.bits * 2);
    Value* x = builder_.CreateIntCast(a, wide, type.is_signed());
    Value* y = builder_.CreateIntCast(b, wide, type.is_signed());
    Value* product = builder_.CreateMul(x, y);
    if (Has(statement, "wide")) return product;
    if (Has(statement, "hi")) product = builder_.CreateLShr(product, type.bits);
    return builder_.CreateTrunc(product, IrType(type));
  }

  // bfind: the place of the highest bit that is not the sign's, or how far it is from the top; all
  // ones where there is none.
  Value* HighestBit(Value* value, PtxType type, bool from_top) {
    if (type.is_signed())
      value = builder_.CreateXor(value, builder_.CreateAShr(value, type.bits - 1));
    llvm::Type* const word = value->getType();
    Value* zeros =
        builder_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, value, builder_.getFalse());
    Value* place =
        from_top ? zeros : builder_.CreateSub(llvm::ConstantInt::get(word, type.bits - 1), zeros);
    return builder_.CreateSelect(builder_.CreateICmpEQ(value, llvm::Constant::getNullValue(word)),
                                 llvm::Constant::getAllOnesValue(word), place);
  }

  Value* Shift(Value* value, Value* count, PtxType type, bool left) {
    Value* bits = llvm::ConstantInt::get(count->getType(), type.bits);
    Value* small = builder_.CreateICmpULT(count, bits);
    Value* last = llvm::ConstantInt::get(count->getType(), type.bits - 1);
    Value* safe =
        builder_.CreateZExtOrTrunc(builder_.CreateSelect(small, count, last), value->getType());
    if (left) {
      return builder_.CreateSelect(small, builder_.CreateShl(value, safe),
                                   llvm::ConstantInt::get(value->getType(), 0));
    }
    if (type.is_signed()) return builder_.CreateAShr(value, safe);
    return builder_.CreateSelect(small, builder_.CreateLShr(value, safe),
                                 llvm::ConstantInt::get(value->getType(), 0));
  }

  Value* BitField(Value* from, Value* at, Value* count, PtxType type) {
    // Shifted up until the field's first bit is the word's, then down.
    Value* bits = builder_.getInt32(type.bits);
    Value* low = builder_.CreateAnd(at, builder_.getInt32(255));
    Value* length = builder_.CreateAnd(count, builder_.getInt32(255));
    Value* end = builder_.CreateAdd(low, length);
    Value* top = builder_.CreateSelect(builder_.CreateICmpULT(end, bits), end, bits);
    Value* up = builder_.CreateSub(bits, top);
    Value* shifted = Shift(from, up, type, true);
    Value* field = Shift(shifted, builder_.CreateAdd(up, low), type, false);
    return builder_.CreateSelect(builder_.CreateICmpEQ(length, builder_.getInt32(0)),
                                 llvm::ConstantInt::get(field->getType(), 0), field);
  }

  Value* Permute(Value* a, Value* b, Value* selector) {
    llvm::Type* wide = builder_.getInt64Ty();
    Value* both = builder_.CreateOr(builder_.CreateZExt(a, wide),
                                    builder_.CreateShl(builder_.CreateZExt(b, wide), 32));
    Value* result = builder_.getInt32(0);
    for (int i = 0; i < 4; ++i) {
      Value* choice = builder_.CreateLShr(selector, 4 * i);
      Value* byte_at = builder_.CreateShl(builder_.CreateAnd(choice, builder_.getInt32(7)), 3);
      Value* byte = builder_.CreateTrunc(
          builder_.CreateLShr(both, builder_.CreateZExt(byte_at, wide)), builder_.getInt8Ty());
      Value* sign = builder_.CreateAShr(byte, 7);
      Value* wants_sign =
          builder_.CreateTrunc(builder_.CreateLShr(choice, 3), builder_.getInt1Ty());
      Value* chosen = builder_.CreateSelect(wants_sign, sign, byte);
      result = builder_.CreateOr(
          result, builder_.CreateShl(builder_.CreateZExt(chosen, builder_.getInt32Ty()), 8 * i));
    }
    return result;
  }

  Value* Logic(Value* a, Value* b, Value* c, uint64_t table) {
    Value* result = builder_.getInt32(0);
    for (int i = 0; i < 8; ++i) {
      if ((table >> i & 1) == 0) continue;
      Value* term =
          builder_.CreateAnd(i & 4 ? a : builder_.CreateNot(a), i & 2 ? b : builder_.CreateNot(b));
      term = builder_.CreateAnd(term, i & 1 ? c : builder_.CreateNot(c));
      result = builder_.CreateOr(result, term);
    }
    return result;
  }

  // The value of an instruction with one result; null when it is not known. `result` is the type
  // that it has.
  Value* Compute(const PtxStatement& statement, PtxType type, PtxType* result) {
    const std::string& name = statement.opcode[0];
    const size_t count = statement.operands.size() - 1;
    const bool is_float = type.is_float();
    for (const char* mode : {"sat", "rz", "rm", "rp", "f16x2", "x2"}) {
      if (Has(statement, mode)) return nullptr;
    }
    // Operands of a type other than the instruction's.
    auto type_of = [&](size_t i) -> PtxType {
      if ((name == "shl" || name == "shr") && i == 2) return {'u', 32};
      if (name == "bfe" && i >= 2) return {'u', 32};
      if (name == "bfi" && i >= 3) return {'u', 32};
      if (name == "selp" && i == 3) return {'p', 1};
      if ((name == "mad" || name == "madc") && i == 3 && Has(statement, "wide"))
        return {type.kind, type.bits * 2};
      return type;
    };
    Value* v[5] = {};
    for (size_t i = 1; i <= count; ++i) {
      if (i > 4) return nullptr;
      v[i] = Read(statement.operands[i], type_of(i));
      if (v[i] == nullptr) return nullptr;
    }
    Value* a = v[1];
    Value* b = v[2];
    Value* c = v[3];
    auto unary = [&](llvm::Intrinsic::ID id) { return builder_.CreateUnaryIntrinsic(id, a); };
    auto binary = [&](llvm::Intrinsic::ID id) { return builder_.CreateBinaryIntrinsic(id, a, b); };
    if (count == 1) {
      if (is_float) {
        Value* one = llvm::ConstantFP::get(a->getType(), 1.0);
        if (name == "neg") return builder_.CreateFNeg(a);
        if (name == "abs") return unary(llvm::Intrinsic::fabs);
        if (name == "sqrt") return unary(llvm::Intrinsic::sqrt);
        if (name == "rcp") return builder_.CreateFDiv(one, a);
        if (name == "rsqrt") return builder_.CreateFDiv(one, unary(llvm::Intrinsic::sqrt));
        if (name == "sin") return unary(llvm::Intrinsic::sin);
        if (name == "cos") return unary(llvm::Intrinsic::cos);
        if (name == "ex2") return unary(llvm::Intrinsic::exp2);
        if (name == "lg2") return unary(llvm::Intrinsic::log2);
        if (name == "tanh") return Call("tanhf", builder_.getFloatTy(), {a}, true);
        return nullptr;
      }
      if (name == "neg") return builder_.CreateNeg(a);
      if (name == "not") return builder_.CreateNot(a);
      if (name == "abs")
        return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, builder_.getFalse());
      if (name == "brev") return unary(llvm::Intrinsic::bitreverse);
      if (name == "popc" || name == "clz") {
        *result = {'u', 32};
        if (name == "popc") return unary(llvm::Intrinsic::ctpop);
        return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, a, builder_.getFalse());
      }
      if (name == "bfind") {
        *result = {'u', 32};
        return HighestBit(a, type, Has(statement, "shiftamt"));
      }
      return nullptr;
    }
    const bool carries_out = Has(statement, "cc");
    if (count == 2) {
      if (name == "add" || name == "sub") {
        if (is_float) return name == "add" ? builder_.CreateFAdd(a, b) : builder_.CreateFSub(a, b);
        if (carries_out) return AddWithCarry(a, b, name == "sub", false, true);
        return name == "add" ? builder_.CreateAdd(a, b) : builder_.CreateSub(a, b);
      }
      if (name == "addc" || name == "subc")
        return AddWithCarry(a, b, name == "subc", true, carries_out);
      if (name == "mul") {
        if (is_float) return builder_.CreateFMul(a, b);
        if (Has(statement, "wide")) *result = {type.kind, type.bits * 2};
        return Product(statement, type, a, b);
      }
      if (name == "div" && is_float) return builder_.CreateFDiv(a, b);
      if (name == "div" || name == "rem") {
        if (is_float) return nullptr;
        // PTX leaves division by zero undefined; a fault would end the process.
        Value* zero = llvm::ConstantInt::get(b->getType(), 0);
        Value* safe = builder_.CreateSelect(builder_.CreateICmpEQ(b, zero),
                                            llvm::ConstantInt::get(b->getType(), 1), b);
        if (!type.is_signed())
          return name == "div" ? builder_.CreateUDiv(a, safe) : builder_.CreateURem(a, safe);
        // Division of the least number by -1 must not fault either.
        Value* minus = llvm::ConstantInt::getSigned(b->getType(), -1);
        Value* is_minus = builder_.CreateICmpEQ(safe, minus);
        Value* by = builder_.CreateSelect(is_minus, llvm::ConstantInt::get(b->getType(), 1), safe);
        if (name == "rem") return builder_.CreateSRem(a, by);
        Value* quotient = builder_.CreateSDiv(a, by);
        return builder_.CreateSelect(is_minus, builder_.CreateNeg(a), quotient);
      }
      if (name == "min")
        return binary(is_float           ? llvm::Intrinsic::minnum
                      : type.is_signed() ? llvm::Intrinsic::smin
                                         : llvm::Intrinsic::umin);
      if (name == "max")
        return binary(is_float           ? llvm::Intrinsic::maxnum
                      : type.is_signed() ? llvm::Intrinsic::smax
                                         : llvm::Intrinsic::umax);
      if (name == "copysign" && is_float) {
        return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, b, a);
      }
      if (is_float) return nullptr;
      if (name == "and") return builder_.CreateAnd(a, b);
      if (name == "or") return builder_.CreateOr(a, b);
      if (name == "xor") return builder_.CreateXor(a, b);
      if (name == "shl") return Shift(a, b, type, true);
      if (name == "shr") return Shift(a, b, type, false);
      return nullptr;
    }
    if (count == 3) {
      if (name == "selp") return builder_.CreateSelect(c, a, b);
      if (name == "fma" || (name == "mad" && is_float))
        return is_float ? builder_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c})
                        : nullptr;
      if (is_float) return nullptr;
      if (name == "mad" || name == "madc") {
        if (Has(statement, "wide")) *result = {type.kind, type.bits * 2};
        Value* product = Product(statement, type, a, b);
        if (name == "mad" && !carries_out) return builder_.CreateAdd(product, c);
        return AddWithCarry(product, c, false, name == "madc", carries_out);
      }
      if (name == "bfe") return BitField(a, b, c, type);
      if (name == "prmt" && statement.opcode.size() == 2) return Permute(a, b, c);
      if (name == "sad") {
        Value* less =
            type.is_signed() ? builder_.CreateICmpSLT(a, b) : builder_.CreateICmpULT(a, b);
        Value* difference =
            builder_.CreateSelect(less, builder_.CreateSub(b, a), builder_.CreateSub(a, b));
        return builder_.CreateAdd(difference, c);
      }
      if (name == "shf") {
        // A funnel: `c` bits of the pair {b, a}.
        Value* shift =
            Has(statement, "clamp")
                ? builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, c, builder_.getInt32(32))
                : builder_.CreateAnd(c, builder_.getInt32(31));
        llvm::Type* wide = builder_.getInt64Ty();
        Value* both = builder_.CreateOr(builder_.CreateZExt(a, wide),
                                        builder_.CreateShl(builder_.CreateZExt(b, wide), 32));
        Value* by = builder_.CreateZExt(shift, wide);
        Value* shifted = Has(statement, "l") ? builder_.CreateLShr(builder_.CreateShl(both, by), 32)
                                             : builder_.CreateLShr(both, by);
        return builder_.CreateTrunc(shifted, builder_.getInt32Ty());
      }
      return nullptr;
    }
    if (count == 4 && name == "bfi") {
      PtxType plain{'u', type.bits};
      Value* ones = llvm::Constant::getAllOnesValue(a->getType());
      Value* length = builder_.CreateAnd(v[4], builder_.getInt32(255));
      Value* low = builder_.CreateAnd(c, builder_.getInt32(255));
      Value* mask = Shift(builder_.CreateNot(Shift(ones, length, plain, true)), low, plain, true);
      return builder_.CreateOr(builder_.CreateAnd(b, builder_.CreateNot(mask)),
                               builder_.CreateAnd(Shift(a, low, plain, true), mask));
    }
    if (count == 4 && name == "lop3") {
      auto* table = llvm::dyn_cast<llvm::ConstantInt>(v[4]);
      uint64_t rows = 0;
      // An "n" operand is a constant that arrives through an alloca.
      if (table == nullptr) {
        const std::string& text = statement.operands[4].parts[0];
        auto* load = llvm::dyn_cast<llvm::LoadInst>(v[4]);
        if (load == nullptr || !ConstantOperand(text, &rows)) return nullptr;
      } else {
        rows = table->getZExtValue();
      }
      return Logic(a, b, c, rows);
    }
    return nullptr;
  }

  bool ConstantOperand(const std::string& name, uint64_t* value) {
    unsigned number = 0;
    if (!absl::SimpleAtoi(absl::StripPrefix(Plain(name), "$"), &number)) return false;
    if (number < outputs_.size() || number - outputs_.size() >= call_->arg_size()) return false;
    auto* constant = llvm::dyn_cast<llvm::ConstantInt>(
        call_->getArgOperand(static_cast<unsigned>(number - outputs_.size())));
    if (constant != nullptr) *value = constant->getZExtValue();
    return constant != nullptr;
  }

  CallInst* call_;
  llvm::IRBuilder<> builder_;
  llvm::Module& module_;
  llvm::InlineAsm* assembly_;
  std::map<std::string, Slot> slots_;  // operands and registers
  std::vector<std::string> outputs_;
  Slot carry_;
  bool clobbers_memory_ = false;
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
