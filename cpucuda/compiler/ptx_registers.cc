#include "cpucuda/compiler/ptx_registers.h"

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cpucuda/compiler/spmd/kernel_shape.h"
#include "cpucuda/runtime/block_context.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Module.h"

namespace stride::cpucuda {

using llvm::CallInst;
using llvm::Value;

PtxRegisters::PtxRegisters(CallInst* call)
    : call_(call),
      builder_(call),
      module_(*call->getModule()),
      assembly_(llvm::cast<llvm::InlineAsm>(call->getCalledOperand())) {}

absl::Status PtxRegisters::BindOperands() {
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

void PtxRegisters::Finish() {
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

PtxRegisters::Slot PtxRegisters::NewSlot(llvm::Type* type) {
  llvm::BasicBlock& entry = call_->getFunction()->getEntryBlock();
  llvm::IRBuilder<> top(&entry, entry.begin());
  Slot slot{top.CreateAlloca(type), type};
  builder_.CreateStore(llvm::Constant::getNullValue(type), slot.place);
  return slot;
}

bool PtxRegisters::Declare(const PtxStatement& statement) {
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

Value* PtxRegisters::Read(const std::string& given, PtxType type) {
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

Value* PtxRegisters::Read(const PtxOperand& operand, PtxType type) {
  if (operand.is_address || operand.parts.size() != 1) return nullptr;
  return Read(operand.parts[0], type);
}

bool PtxRegisters::Store(const std::string& name, Value* value, bool is_signed) {
  if (name == "_") return true;
  auto found = slots_.find(Plain(name));
  if (found == slots_.end()) return false;
  builder_.CreateStore(Recast(value, found->second.type, is_signed), found->second.place);
  return true;
}

bool PtxRegisters::ConstantOperand(const std::string& name, uint64_t* value) {
  unsigned number = 0;
  if (!absl::SimpleAtoi(absl::StripPrefix(Plain(name), "$"), &number)) return false;
  if (number < outputs_.size() || number - outputs_.size() >= call_->arg_size()) return false;
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(
      call_->getArgOperand(static_cast<unsigned>(number - outputs_.size())));
  if (constant != nullptr) *value = constant->getZExtValue();
  return constant != nullptr;
}

llvm::Type* PtxRegisters::IrType(PtxType type) {
  if (type.is_float()) return type.bits == 64 ? builder_.getDoubleTy() : builder_.getFloatTy();
  return builder_.getIntNTy(type.bits);
}

Value* PtxRegisters::Recast(Value* value, llvm::Type* to, bool is_signed) {
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

Value* PtxRegisters::Call(const char* name, llvm::Type* result, std::vector<Value*> arguments,
                          bool pure) {
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

Value* PtxRegisters::SharedBase() {
  Value* base = Call(spmd::kPointer, builder_.getPtrTy(),
                     {builder_.getInt32(offsetof(BlockContext, shared))}, true);
  return builder_.CreatePtrToInt(base, builder_.getInt64Ty());
}

std::string PtxRegisters::Plain(const std::string& name) {
  if (!absl::StartsWith(name, "${")) return name;
  return absl::StrCat("$", name.substr(2, name.find_first_of(":}") - 2));
}

Value* PtxRegisters::Field(size_t offset) {
  return Call(spmd::kField, builder_.getInt32Ty(),
              {builder_.getInt32(static_cast<uint32_t>(offset))}, true);
}

Value* PtxRegisters::Thread(const char* name) {
  return Call(name, builder_.getInt32Ty(), {}, true);
}

Value* PtxRegisters::SpecialRegister(absl::string_view name) {
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
  if (name == "lanemask_le") return builder_.CreateOr(below(), builder_.CreateShl(word(1), lane()));
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

Value* PtxRegisters::Immediate(absl::string_view text, PtxType type) {
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

}  // namespace stride::cpucuda
