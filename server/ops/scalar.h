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

// An integer of up to 65 bits with sign, which holds Python's integers up to uint64.
using Integer = __int128;
std::string ToString(Integer value);

// A number without a type, such as a Python int, float or complex in NumPy 2.
using WeakScalar = std::variant<Integer, double, std::complex<double>>;

// A Scalar of the contract: its value, and its type if given (always for bool).
struct ScalarOperand {
  WeakScalar value;
  std::optional<DType> dtype;
};
// INVALID_FIELD at `field` if the value is missing or does not fit its type.
absl::StatusOr<ScalarOperand> ReadScalar(const v1::Scalar& scalar, std::string_view field);

enum class OutOfRange {
  kError,     // integers out of range are errors
  kSaturate,  // integers out of range become the nearest value
};

// Encodes `value` as an element of `dtype` with C's conversions. Errors at `field`: an integer out
// of range; a float or complex with a fraction or out of range for an integer type; a complex with
// an imaginary part for a real type.
absl::StatusOr<wire::ScalarValue> EncodeScalar(const WeakScalar& value, DType dtype,
                                               std::string_view field,
                                               OutOfRange out_of_range = OutOfRange::kError);

// Returns whether the integer fits an integer type (or bool: 0 and 1).
bool FitsInteger(Integer value, DType dtype);

// Converts to IEEE binary16 or bfloat16, rounding to nearest even.
uint16_t ToFloat16(double value);
uint16_t ToBFloat16(double value);

double RealOf(const WeakScalar& value);

}  // namespace stride::ops
