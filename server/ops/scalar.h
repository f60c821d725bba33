#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/statusor.h"
#include "server/store/dtype.h"
#include "server/wire/plan.pb.h"
#include "stride/v1/array.pb.h"

namespace stride::ops {

// An integer of either sign up to 65 bits, so that Python's integers up to uint64 keep their value.
using Integer = __int128;
std::string ToString(Integer value);

// A number without a type of its own, as a Python int, float or complex is to NumPy 2.
using WeakScalar = std::variant<Integer, double, std::complex<double>>;

// A Scalar of the contract: its value, and its type when it has one (always for bool).
struct ScalarOperand {
  WeakScalar value;
  std::optional<DType> dtype;
};
// INVALID_FIELD at `field` when there is no value, or when a typed value does not fit its type.
absl::StatusOr<ScalarOperand> ReadScalar(const v1::Scalar& scalar, std::string_view field);

enum class OutOfRange {
  kError,     // integers that do not fit an integer type are refused
  kSaturate,  // take the type's nearest value
};

// `value` as an element of `dtype`, C's conversions. Errors at `field`: an integer out of range; a
// float or complex for an integer type with a fraction or out of range; a complex with an imaginary
// part for a real type.
absl::StatusOr<wire::ScalarValue> EncodeScalar(const WeakScalar& value, DType dtype,
                                               std::string_view field,
                                               OutOfRange out_of_range = OutOfRange::kError);

// Whether an integer lies within an integer type (or bool: 0 and 1).
bool FitsInteger(Integer value, DType dtype);

// IEEE binary16 and bfloat16, rounded to nearest even.
uint16_t ToFloat16(double value);
uint16_t ToBFloat16(double value);

double RealOf(const WeakScalar& value);

}  // namespace stride::ops
