#include "server/ops/promotion.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/base/error.h"
#include "stride/v1/operation.pb.h"

namespace stride::ops {
namespace {

// Rank of floats and of the parts of complex numbers: 1 for 16 bits, 2 for 32, 3 for 64.
int FloatRank(DType d) {
  switch (d) {
    case DType::kFloat16:
    case DType::kBFloat16:
      return 1;
    case DType::kFloat32:
    case DType::kComplex64:
      return 2;
    default:
      return 3;
  }
}

// Rank of NumPy's smallest float type for an integer type.
int FloatRankOfInteger(DType d) {
  if (IsBool(d) || ItemSize(d) == 1) return 1;
  return ItemSize(d) == 2 ? 2 : 3;
}

DType PromoteIntegers(DType a, DType b) {
  if (IsSigned(a) == IsSigned(b)) return ItemSize(a) >= ItemSize(b) ? a : b;
  DType s = IsSigned(a) ? a : b;
  DType u = IsSigned(a) ? b : a;
  if (ItemSize(s) > ItemSize(u)) return s;
  switch (ItemSize(u)) {
    case 1:
      return DType::kInt16;
    case 2:
      return DType::kInt32;
    case 4:
      return DType::kInt64;
    default:
      return DType::kFloat64;
  }
}

DType PromoteFloats(DType a, DType b) {
  if (FloatRank(a) == 1 && FloatRank(b) == 1) return a == b ? a : DType::kFloat32;
  return FloatRank(a) >= FloatRank(b) ? a : b;
}

DType PromoteToFloat(DType f, DType integer) {
  int rank = std::max(FloatRank(f), FloatRankOfInteger(integer));
  if (rank == 1) return f;
  return rank == 2 ? DType::kFloat32 : DType::kFloat64;
}

// NumPy's order of loops.
constexpr DType kLoopOrder[] = {
    DType::kBool,     DType::kInt8,    DType::kUInt8,   DType::kInt16,     DType::kUInt16,
    DType::kInt32,    DType::kUInt32,  DType::kInt64,   DType::kUInt64,    DType::kFloat16,
    DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128};

int KindOrder(DType d) {
  if (IsBool(d)) return 0;
  if (IsUnsigned(d)) return 1;
  if (IsSigned(d)) return 2;
  return IsFloat(d) ? 3 : 4;
}

std::string TypeNames(absl::Span<const DType> types) {
  return absl::StrJoin(types, ", ", [](std::string* out, DType d) { out->append(Name(d)); });
}

absl::Status NoLoop(const OpRow& row, absl::Span<const DType> types, std::string_view field) {
  std::string hint;
  if (row.name == "subtract") hint = "; use bitwise_xor or logical_xor for bool";
  if (row.name == "negative") hint = "; use invert or logical_not for bool";
  return InvalidField(v1::ERROR_REASON_DATA_TYPE_MISMATCH, field,
                      absl::StrCat("no version of the function takes these types", hint, ": ",
                                   std::string(row.name), "(", TypeNames(types), ")"),
                      {{"function", std::string(row.name)}});
}

bool AllBool(absl::Span<const DType> types) {
  return std::all_of(types.begin(), types.end(), [](DType d) { return IsBool(d); });
}

// Returns the first loop to whose type all `types` cast safely.
std::optional<DType> FindLoop(const OpRow& row, absl::Span<const DType> types) {
  for (DType loop : kLoopOrder) {
    if (!HasLoop(row, loop)) continue;
    bool fits =
        std::all_of(types.begin(), types.end(), [&](DType d) { return CanCastSafely(d, loop); });
    if (fits) return loop;
  }
  return std::nullopt;
}

absl::Status CheckCasts(const OpRow& row, absl::Span<const ArgumentType> arguments,
                        absl::Span<const DType> to, std::string_view field, Casting casting) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const DType* from = std::get_if<DType>(&arguments[i]);
    if (from == nullptr || CanCast(*from, to[i], casting)) continue;
    return InvalidField(
        v1::ERROR_REASON_DATA_TYPE_MISMATCH, field,
        absl::StrCat("an input cannot be cast to the type of the computation",
                     casting == Casting::kSameKind
                         ? " without changing its kind; copy it with that data_type first"
                         : " under the casting asked for",
                     ": input ", i, " of ", std::string(row.name), ", ", std::string(Name(*from)),
                     " to ", std::string(Name(to[i])), ", casting ", std::string(Name(casting))));
  }
  return absl::OkStatus();
}

absl::StatusOr<ResolvedLoop> Uniform(const OpRow& row, const std::vector<DType>& types,
                                     std::optional<DType> data_type, std::string_view field) {
  std::optional<DType> loop;
  if (data_type && row.result == ResultRule::kSame) {
    loop = data_type;
    if (!HasLoop(row, *loop)) return NoLoop(row, {*loop}, field);
  } else {
    if (row.refuses_bool && AllBool(types)) return NoLoop(row, types, field);
    loop = FindLoop(row, types);
    if (!loop) return NoLoop(row, types, field);
  }
  DType result = ResultOf(row, *loop);
  if (data_type && *data_type != result) {
    return InvalidField(v1::ERROR_REASON_DATA_TYPE_MISMATCH, field,
                        absl::StrCat("the function does not return the type asked for: ",
                                     std::string(row.name), " returns ", std::string(Name(result)),
                                     ", not ", std::string(Name(*data_type))));
  }
  return ResolvedLoop{std::vector<DType>(types.size(), *loop), result};
}

absl::StatusOr<ResolvedLoop> LoadExponent(const OpRow& row, const std::vector<DType>& types,
                                          std::optional<DType> data_type, std::string_view field) {
  auto mantissa = Uniform(row, {types[0]}, data_type, field);
  if (!mantissa.ok()) return mantissa.status();
  DType exponent = CanCastSafely(types[1], DType::kInt32) ? DType::kInt32 : DType::kInt64;
  if (!CanCastSafely(types[1], exponent)) return NoLoop(row, types, field);
  mantissa->arguments.push_back(exponent);
  return mantissa;
}

absl::StatusOr<ResolvedLoop> ChooseLoop(const OpRow& row, absl::Span<const ArgumentType> arguments,
                                        std::optional<DType> data_type, std::string_view field) {
  if (row.rule == TypeRule::kWhere) {
    auto rest = Uniform(row, ResolveWeak(arguments.subspan(1)), data_type, field);
    if (!rest.ok()) return rest.status();
    rest->arguments.insert(rest->arguments.begin(), DType::kBool);
    return rest;
  }
  if (row.rule == TypeRule::kLoadExponent) {
    std::vector<DType> types = {ResolveWeak(arguments.subspan(0, 1))[0],
                                ResolveWeak(arguments.subspan(1, 1))[0]};
    // NumPy takes its first loop, float16, for a Python integer with integers.
    const auto* weak = std::get_if<WeakScalar>(&arguments[0]);
    const DType* exponent = std::get_if<DType>(&arguments[1]);
    if (weak != nullptr && std::holds_alternative<Integer>(*weak) && exponent != nullptr &&
        IsInteger(*exponent)) {
      types[0] = DType::kInt8;
    }
    return LoadExponent(row, types, data_type, field);
  }
  std::vector<DType> types = ResolveWeak(arguments);
  if (row.rule == TypeRule::kDivide && !data_type) {
    bool integers =
        std::all_of(types.begin(), types.end(), [](DType d) { return IsBool(d) || IsInteger(d); });
    if (integers) return ResolvedLoop{{DType::kFloat64, DType::kFloat64}, DType::kFloat64};
  }
  if (row.rule == TypeRule::kComparison && IsInteger(types[0]) && IsInteger(types[1]) &&
      PromoteTypes(types[0], types[1]) == DType::kFloat64 &&
      data_type.value_or(DType::kBool) == DType::kBool) {
    auto widest = [](DType d) { return IsSigned(d) ? DType::kInt64 : DType::kUInt64; };
    return ResolvedLoop{{widest(types[0]), widest(types[1])}, DType::kBool};
  }
  return Uniform(row, types, data_type, field);
}

}  // namespace

DType PromoteTypes(DType a, DType b) {
  if (a == b || IsBool(b)) return a;
  if (IsBool(a)) return b;
  if (IsInteger(a) && IsInteger(b)) return PromoteIntegers(a, b);
  if (IsComplex(a) || IsComplex(b)) {
    auto rank = [](DType d) { return IsInteger(d) ? FloatRankOfInteger(d) : FloatRank(d); };
    return std::max(rank(a), rank(b)) <= 2 ? DType::kComplex64 : DType::kComplex128;
  }
  if (IsFloat(a) && IsFloat(b)) return PromoteFloats(a, b);
  return IsFloat(a) ? PromoteToFloat(a, b) : PromoteToFloat(b, a);
}

bool CanCastSafely(DType from, DType to) { return PromoteTypes(from, to) == to; }

bool CanCast(DType from, DType to, Casting casting) {
  switch (casting) {
    case Casting::kNo:
      return from == to;
    case Casting::kSafe:
      return CanCastSafely(from, to);
    case Casting::kSameKind:
      return CanCastSameKind(from, to);
    case Casting::kUnsafe:
      return true;
  }
  return false;
}

std::string_view Name(Casting casting) {
  constexpr std::string_view kNames[] = {"no", "safe", "same_kind", "unsafe"};
  return kNames[static_cast<int>(casting)];
}

absl::StatusOr<Casting> ReadCasting(int number, std::string_view field, Casting unset) {
  switch (number) {
    case v1::CASTING_UNSPECIFIED:
      return unset;
    case v1::CASTING_NO:
    case v1::CASTING_EQUIV:
      return Casting::kNo;
    case v1::CASTING_SAFE:
      return Casting::kSafe;
    case v1::CASTING_SAME_KIND:
      return Casting::kSameKind;
    case v1::CASTING_UNSAFE:
      return Casting::kUnsafe;
    default:
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                          absl::StrCat("no casting has this number: ", number));
  }
}

bool CanCastSameKind(DType from, DType to) {
  return CanCastSafely(from, to) || KindOrder(from) <= KindOrder(to);
}

std::vector<DType> ResolveWeak(absl::Span<const ArgumentType> arguments) {
  std::optional<DType> common;
  auto meet = [&](DType d) { common = common ? PromoteTypes(*common, d) : d; };
  std::vector<DType> types(arguments.size(), DType::kBool);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (const DType* exact = std::get_if<DType>(&arguments[i])) meet(types[i] = *exact);
  }
  // Decide greater kinds first: a weak integer with a weak float becomes a float.
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* weak = std::get_if<WeakScalar>(&arguments[i]);
    if (weak == nullptr || !std::holds_alternative<std::complex<double>>(*weak)) continue;
    bool single = common && (IsFloat(*common) || IsComplex(*common)) && FloatRank(*common) <= 2;
    meet(types[i] = single ? DType::kComplex64 : DType::kComplex128);
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* weak = std::get_if<WeakScalar>(&arguments[i]);
    if (weak == nullptr || !std::holds_alternative<double>(*weak)) continue;
    bool takes = common && (IsFloat(*common) || IsComplex(*common));
    meet(types[i] = takes ? *common : DType::kFloat64);
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* weak = std::get_if<WeakScalar>(&arguments[i]);
    if (weak == nullptr || !std::holds_alternative<Integer>(*weak)) continue;
    bool large = !FitsInteger(std::get<Integer>(*weak), DType::kInt64);
    bool takes = common && !IsBool(*common);
    types[i] = takes ? *common : large ? DType::kUInt64 : DType::kInt64;
  }
  return types;
}

DType ResultType(absl::Span<const ArgumentType> arguments) {
  std::vector<DType> types = ResolveWeak(arguments);
  DType result = DType::kBool;
  for (DType type : types) result = PromoteTypes(result, type);
  return result;
}

absl::StatusOr<ResolvedLoop> ResolveLoop(const OpRow& row, absl::Span<const ArgumentType> arguments,
                                         std::optional<DType> data_type, std::string_view field,
                                         Casting casting) {
  auto loop = ChooseLoop(row, arguments, data_type, field);
  if (!loop.ok()) return loop.status();
  // Default promotion is at least as safe as kSameKind.
  if (!data_type && casting == Casting::kSameKind) return loop;
  auto status = CheckCasts(row, arguments, loop->arguments, field, casting);
  if (!status.ok()) return status;
  return loop;
}

}  // namespace stride::ops
