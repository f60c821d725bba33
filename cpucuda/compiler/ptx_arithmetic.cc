#include "cpucuda/compiler/ptx_arithmetic.h"

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "llvm/IR/Intrinsics.h"

namespace stride::cpucuda {
namespace {

using llvm::Value;

std::optional<llvm::CmpInst::Predicate> PredicateOf(absl::string_view name, PtxType type) {
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

}  // namespace

bool PtxArithmetic::LowerCompare(const PtxStatement& statement, PtxType type) {
  const auto& opcode = statement.opcode;
  if (opcode.size() != 3 || statement.operands.size() != 3) return false;
  auto predicate = PredicateOf(opcode[1], type);
  Value* a = registers_.Read(statement.operands[1], type);
  Value* b = registers_.Read(statement.operands[2], type);
  if (!predicate || a == nullptr || b == nullptr) return false;
  // `p|q` also sets `q` to the opposite.
  const std::string& to = statement.operands[0].parts[0];
  Value* result = builder_.CreateCmp(*predicate, a, b);
  const size_t bar = to.find('|');
  if (bar == std::string::npos) return registers_.Store(to, result, false);
  return registers_.Store(to.substr(0, bar), result, false) &&
         registers_.Store(to.substr(bar + 1), builder_.CreateNot(result), false);
}

bool PtxArithmetic::LowerConvert(const PtxStatement& statement, PtxType from) {
  const auto& opcode = statement.opcode;
  if (opcode.size() < 3 || statement.operands.size() != 2) return false;
  std::optional<PtxType> to = TypeOf(opcode[opcode.size() - 2]);
  Value* value = registers_.Read(statement.operands[1], from);
  if (!to || value == nullptr) return false;
  // Other roundings of a float would need the processor's rounding mode.
  for (const char* mode : {"rz", "rm", "rp", "sat"}) {
    if (Has(statement, mode)) return false;
  }
  if (from.is_float() && to->is_float()) {
    value = builder_.CreateFPCast(RoundToInteger(statement, value), registers_.IrType(*to));
  } else if (from.is_float()) {
    // As PTX defines it, values out of range become the nearest number and NaN becomes zero.
    auto id = to->is_signed() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    value = builder_.CreateIntrinsic(id, {registers_.IrType(*to), value->getType()},
                                     {RoundToInteger(statement, value)});
  } else if (to->is_float()) {
    value = from.is_signed() ? builder_.CreateSIToFP(value, registers_.IrType(*to))
                             : builder_.CreateUIToFP(value, registers_.IrType(*to));
  } else {
    value = builder_.CreateIntCast(value, registers_.IrType(*to), from.is_signed());
  }
  return registers_.Store(statement.operands[0].parts[0], value, to->is_signed());
}

Value* PtxArithmetic::Compute(const PtxStatement& statement, PtxType type, PtxType* result) {
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
    v[i] = registers_.Read(statement.operands[i], type_of(i));
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
      if (name == "tanh") return registers_.Call("tanhf", builder_.getFloatTy(), {a}, true);
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
      Value* less = type.is_signed() ? builder_.CreateICmpSLT(a, b) : builder_.CreateICmpULT(a, b);
      Value* difference =
          builder_.CreateSelect(less, builder_.CreateSub(b, a), builder_.CreateSub(a, b));
      return builder_.CreateAdd(difference, c);
    }
    if (name == "shf") {
      // A funnel: `c` bits of the pair {b, a}.
      Value* shift = Has(statement, "clamp") ? builder_.CreateBinaryIntrinsic(
                                                   llvm::Intrinsic::umin, c, builder_.getInt32(32))
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
      if (load == nullptr || !registers_.ConstantOperand(text, &rows)) return nullptr;
    } else {
      rows = table->getZExtValue();
    }
    return Logic(a, b, c, rows);
  }
  return nullptr;
}

Value* PtxArithmetic::RoundToInteger(const PtxStatement& statement, Value* value) {
  llvm::Intrinsic::ID id = llvm::Intrinsic::not_intrinsic;
  if (Has(statement, "rni")) id = llvm::Intrinsic::roundeven;
  if (Has(statement, "rzi")) id = llvm::Intrinsic::trunc;
  if (Has(statement, "rmi")) id = llvm::Intrinsic::floor;
  if (Has(statement, "rpi")) id = llvm::Intrinsic::ceil;
  return id == llvm::Intrinsic::not_intrinsic ? value : builder_.CreateUnaryIntrinsic(id, value);
}

Value* PtxArithmetic::Carry() {
  if (carry_.place == nullptr) carry_ = registers_.NewSlot(builder_.getInt1Ty());
  return carry_.place;
}

Value* PtxArithmetic::AddWithCarry(Value* a, Value* b, bool subtract, bool in, bool out) {
  auto id = subtract ? llvm::Intrinsic::usub_with_overflow : llvm::Intrinsic::uadd_with_overflow;
  Value* place = Carry();
  Value* sum = builder_.CreateBinaryIntrinsic(id, a, b);
  Value* result = builder_.CreateExtractValue(sum, 0);
  Value* flag = builder_.CreateExtractValue(sum, 1);
  if (in) {
    Value* before = builder_.CreateLoad(builder_.getInt1Ty(), place);
    Value* more =
        builder_.CreateBinaryIntrinsic(id, result, builder_.CreateZExt(before, result->getType()));
    result = builder_.CreateExtractValue(more, 0);
    flag = builder_.CreateOr(flag, builder_.CreateExtractValue(more, 1));
  }
  if (out) builder_.CreateStore(flag, place);
  return result;
}

Value* PtxArithmetic::Product(const PtxStatement& statement, PtxType type, Value* a, Value* b) {
  llvm::Type* wide = builder_.getIntNTy(type.bits * 2);
  Value* x = builder_.CreateIntCast(a, wide, type.is_signed());
  Value* y = builder_.CreateIntCast(b, wide, type.is_signed());
  Value* product = builder_.CreateMul(x, y);
  if (Has(statement, "wide")) return product;
  if (Has(statement, "hi")) product = builder_.CreateLShr(product, type.bits);
  return builder_.CreateTrunc(product, registers_.IrType(type));
}

Value* PtxArithmetic::HighestBit(Value* value, PtxType type, bool from_top) {
  if (type.is_signed())
    value = builder_.CreateXor(value, builder_.CreateAShr(value, type.bits - 1));
  llvm::Type* const word = value->getType();
  Value* zeros = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, value, builder_.getFalse());
  Value* place =
      from_top ? zeros : builder_.CreateSub(llvm::ConstantInt::get(word, type.bits - 1), zeros);
  return builder_.CreateSelect(builder_.CreateICmpEQ(value, llvm::Constant::getNullValue(word)),
                               llvm::Constant::getAllOnesValue(word), place);
}

Value* PtxArithmetic::Shift(Value* value, Value* count, PtxType type, bool left) {
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

Value* PtxArithmetic::BitField(Value* from, Value* at, Value* count, PtxType type) {
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

Value* PtxArithmetic::Permute(Value* a, Value* b, Value* selector) {
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
    Value* wants_sign = builder_.CreateTrunc(builder_.CreateLShr(choice, 3), builder_.getInt1Ty());
    Value* chosen = builder_.CreateSelect(wants_sign, sign, byte);
    result = builder_.CreateOr(
        result, builder_.CreateShl(builder_.CreateZExt(chosen, builder_.getInt32Ty()), 8 * i));
  }
  return result;
}

Value* PtxArithmetic::Logic(Value* a, Value* b, Value* c, uint64_t table) {
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

}  // namespace stride::cpucuda
