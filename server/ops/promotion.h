#pragma once

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/ops/op_table.h"
#include "server/ops/scalar.h"
#include "server/store/dtype.h"

// NumPy 2's type rules: types alone decide, except that weak scalars adapt to the other types.
namespace stride::ops {

// Returns the smallest type to which both cast safely (float64 for int64 with uint64, as NumPy).
DType PromoteTypes(DType a, DType b);

bool CanCastSafely(DType from, DType to);
bool CanCastSameKind(DType from, DType to);

// Casts that a request allows, as NumPy's `casting=`.
enum class Casting { kNo, kSafe, kSameKind, kUnsafe };
bool CanCast(DType from, DType to, Casting casting);
std::string_view Name(Casting casting);
// INVALID_FIELD if the number is no value of Casting.
absl::StatusOr<Casting> ReadCasting(int number, std::string_view field,
                                    Casting unset = Casting::kSameKind);

// The type of an argument: an exact type, or a weak scalar.
using ArgumentType = std::variant<DType, WeakScalar>;

// Returns the types of all arguments, with weak scalars adapted to the others; exact types stay.
// Does not check the range of integers.
std::vector<DType> ResolveWeak(absl::Span<const ArgumentType> arguments);

// Returns np.result_type.
DType ResultType(absl::Span<const ArgumentType> arguments);

// The loop that an operation runs for given arguments.
struct ResolvedLoop {
  std::vector<DType> arguments;  // casts before the operation; 16-bit floats compute in float32
  DType result;                  // NumPy's type: float16 for a float16 loop
};

// `data_type` as in Ufunc: it is the result's type, and `casting` limits the casts of arguments.
// DATA_TYPE_MISMATCH at `field`.
absl::StatusOr<ResolvedLoop> ResolveLoop(const OpRow& row, absl::Span<const ArgumentType> arguments,
                                         std::optional<DType> data_type, std::string_view field,
                                         Casting casting = Casting::kSameKind);

}  // namespace stride::ops
