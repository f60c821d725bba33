#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/scalar_fit.h"

namespace stride::ops {
namespace {

using Random = v1::Creation::Random;

std::string FieldOf(const char* name) { return absl::StrCat("creation.random.", name); }

// The random words of each element, in terms of its index.
class Words {
 public:
  Words(ProgramBuilder& builder, const Random& random, bool philox)
      : builder_(builder), philox_(philox) {
    index_ = builder.Cast(builder.Index(), DType::kUInt64);
    key_ = Parameter(random.key());
    counter_ = Parameter(random.counter());
    high_ = Parameter(random.counter_high());
  }

  // Two words, the first in the lower half.
  Value Pair() {
    return philox_ ? PhiloxPair(index_) : Generate("random_threefry", {key_, Block(index_)});
  }
  // One word, uint32.
  Value Word() {
    const Value pair_number = Generate("random_half", {index_});
    const Value pair =
        philox_ ? PhiloxPair(pair_number) : Generate("random_threefry", {key_, Block(pair_number)});
    return builder_.Cast(Generate("random_word", {pair, index_}), DType::kUInt32);
  }
  Value Constant(uint64_t value) {
    return builder_.Constant(*EncodeScalar(Integer{value}, DType::kUInt64, ""));
  }
  Value Parameter(uint64_t value) {
    return builder_.Parameter(*EncodeScalar(Integer{value}, DType::kUInt64, ""));
  }
  Value Op(const char* name, Value a, Value b) { return builder_.Op(name, {a, b}, DType::kUInt64); }
  Value Shifted(Value value, uint64_t bits) { return Op("right_shift", value, Constant(bits)); }

 private:
  Value Generate(const char* name, std::vector<Value> arguments) {
    return builder_.Op(name, arguments, DType::kUInt64);
  }
  Value Block(Value number) { return Op("add", counter_, number); }
  // Two pairs a block; the block's number carries into the counter's upper half.
  Value PhiloxPair(Value number) {
    const Value low = Block(Generate("random_half", {number}));
    const Value carry = builder_.Op("less", {low, counter_}, DType::kBool);
    const Value high = Op("add", high_, builder_.Cast(carry, DType::kUInt64));
    const Value odd = builder_.Cast(Generate("random_odd", {number}), DType::kBool);
    return builder_.Op("where",
                       {odd, Generate("random_philox_high", {key_, low, high}),
                        Generate("random_philox_low", {key_, low, high})},
                       DType::kUInt64);
  }

  ProgramBuilder& builder_;
  const bool philox_;
  Value index_, key_, counter_, high_;
};

absl::Status CheckType(bool good, const char* name, const char* types, DType dtype) {
  if (good) return absl::OkStatus();
  return InvalidField(v1::ERROR_REASON_DATA_TYPE_MISMATCH, FieldOf("spec.data_type"),
                      absl::StrCat(name, " are ", types, ", not ", std::string(Name(dtype))));
}

absl::Status CheckFinite(double value, const char* name) {
  if (std::isfinite(value)) return absl::OkStatus();
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, FieldOf(name),
                      absl::StrCat("a finite number is needed, not ", value));
}

// low + scale * value in the type of `value`.
Value Scaled(ProgramBuilder& builder, Value value, double low, double scale) {
  auto constant = [&](double number) {
    return builder.Constant(*EncodeScalar(number, value.dtype, ""));
  };
  if (scale != 1) value = builder.Op("multiply", {constant(scale), value}, value.dtype);
  return low == 0 ? value : builder.Op("add", {constant(low), value}, value.dtype);
}

absl::StatusOr<Value> UniformValue(ProgramBuilder& builder, Words& words,
                                   const Random::Uniform& uniform, DType dtype) {
  if (auto s = CheckType(IsFloat(dtype), "uniform numbers", "floats", dtype); !s.ok()) return s;
  const double low = uniform.low(), high = uniform.has_high() ? uniform.high() : 1;
  if (auto s = CheckFinite(low, "uniform.low"); !s.ok()) return s;
  if (auto s = CheckFinite(high, "uniform.high"); !s.ok()) return s;
  if (high < low || !std::isfinite(high - low)) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, FieldOf("uniform.high"),
                        absl::StrCat("the range is empty or too wide: from ", low, " to ", high));
  }
  const int bits = MantissaBits(dtype);
  Value whole = dtype == DType::kFloat64
                    ? words.Shifted(words.Pair(), 64 - bits)
                    : words.Shifted(builder.Cast(words.Word(), DType::kUInt64), 32 - bits);
  const DType compute = ComputeType(dtype);
  return Scaled(builder, Scaled(builder, builder.Cast(whole, compute), 0, std::ldexp(1, -bits)),
                low, high - low);
}

absl::StatusOr<Value> NormalValue(ProgramBuilder& builder, Words& words,
                                  const Random::Normal& normal, DType dtype) {
  if (auto s = CheckType(IsFloat(dtype), "normal numbers", "floats", dtype); !s.ok()) return s;
  const double deviation = normal.has_deviation() ? normal.deviation() : 1;
  if (auto s = CheckFinite(normal.mean(), "normal.mean"); !s.ok()) return s;
  if (auto s = CheckFinite(deviation, "normal.deviation"); !s.ok()) return s;
  if (deviation < 0) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, FieldOf("normal.deviation"),
                        absl::StrCat("a deviation is not negative: ", deviation));
  }
  if (dtype != DType::kFloat64) {
    return Scaled(builder, builder.Op("random_normal", {words.Word()}, DType::kFloat32),
                  normal.mean(), deviation);
  }
  // The middle of one of 2^52 equal parts of (0, 1).
  auto constant = [&](double number) {
    return builder.Constant(*EncodeScalar(number, DType::kFloat64, ""));
  };
  Value middle = builder.Op(
      "add", {builder.Cast(words.Shifted(words.Pair(), 12), DType::kFloat64), constant(0.5)},
      DType::kFloat64);
  Value place = Scaled(builder, middle, 0, 0x1p-52);
  return Scaled(builder, builder.Op("random_normal", {place}, DType::kFloat64), normal.mean(),
                deviation);
}

absl::StatusOr<Integer> ReadInteger(bool present, const v1::Scalar& scalar, const char* name) {
  if (!present) return Integer{0};
  auto read = ReadScalar(scalar, FieldOf(name));
  if (!read.ok()) return read.status();
  if (const Integer* integer = std::get_if<Integer>(&read->value)) return *integer;
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, FieldOf(name), "an integer is needed");
}

absl::StatusOr<Value> IntegersValue(ProgramBuilder& builder, Words& words,
                                    const Random::Integers& integers, DType dtype) {
  if (auto s = CheckType(IsInteger(dtype), "random integers", "integers", dtype); !s.ok()) return s;
  if (!integers.has_high()) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, FieldOf("integers.high"),
                        "the end of the range is missing");
  }
  auto low = ReadInteger(integers.has_low(), integers.low(), "integers.low");
  if (!low.ok()) return low.status();
  auto high = ReadInteger(true, integers.high(), "integers.high");
  if (!high.ok()) return high.status();
  if (*high <= *low || !FitsInteger(*low, dtype) || !FitsInteger(*high - 1, dtype)) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, FieldOf("integers.high"),
                        absl::StrCat("the range is empty or beyond the type: from ", ToString(*low),
                                     " to ", ToString(*high), " for ", std::string(Name(dtype))));
  }
  const Integer range = *high - *low;
  Value value = words.Pair();
  // For the whole width, the words themselves.
  if (range <= Integer{~uint64_t{0}})
    value = words.Op("random_below", value, words.Constant(static_cast<uint64_t>(range)));
  if (*low != 0) value = words.Op("add", value, words.Constant(static_cast<uint64_t>(*low)));
  return value;
}

absl::StatusOr<Value> RandomValue(ProgramBuilder& builder, const Random& random, DType dtype) {
  switch (random.generator()) {
    case Random::GENERATOR_UNSPECIFIED:
    case Random::GENERATOR_PHILOX_4X32:
      break;
    case Random::GENERATOR_THREEFRY_2X32:
      if (random.counter_high() == 0) break;
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, FieldOf("counter_high"),
                          "the counter of Threefry-2x32 has 64 bits");
    default:
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, FieldOf("generator"),
                          absl::StrCat("no generator has this number: ", random.generator()));
  }
  Words words(builder, random, random.generator() != Random::GENERATOR_THREEFRY_2X32);
  switch (random.distribution_case()) {
    case Random::kBits: {
      const bool good = dtype == DType::kUInt32 || dtype == DType::kUInt64;
      if (auto s = CheckType(good, "a generator's words", "uint32 or uint64", dtype); !s.ok())
        return s;
      return dtype == DType::kUInt32 ? words.Word() : words.Pair();
    }
    case Random::kUniform:
      return UniformValue(builder, words, random.uniform(), dtype);
    case Random::kNormal:
      return NormalValue(builder, words, random.normal(), dtype);
    case Random::kIntegers:
      return IntegersValue(builder, words, random.integers(), dtype);
    case Random::DISTRIBUTION_NOT_SET:
      break;
  }
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "creation.random",
                      "say which distribution: bits, uniform, normal or integers");
}

}  // namespace

absl::StatusOr<Plan> PlanRandom(const Random& random, const Input& existing) {
  auto spec = ReadSpec(random.spec(), FieldOf("spec"));
  if (!spec.ok()) return spec.status();
  ProgramBuilder builder;
  auto value = RandomValue(builder, random, spec->dtype);
  if (!value.ok()) return value.status();
  auto output = ChooseOutput(spec->dtype, spec->shape, existing);
  if (!output.ok()) return output.status();
  return PlanLoop(builder, builder.Cast(*value, spec->dtype), {}, *output, "creation.random");
}

}  // namespace stride::ops
