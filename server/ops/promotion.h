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

// NumPy 2's type rules: types alone decide, but for weak scalars, which take the type that they
// meet.
namespace stride::ops {

// The smallest type to which both cast safely (float64 for int64 with uint64, as NumPy).
DType PromoteTypes(DType a, DType b);

bool CanCastSafely(DType from, DType to);
bool CanCastSameKind(DType from, DType to);

// Which casts a request allows, NumPy's `casting=`.
enum class Casting { kNo, kSafe, kSameKind, kUnsafe };
bool CanCast(DType from, DType to, Casting casting);
std::string_view Name(Casting casting);
// INVALID_FIELD when the number names none.
absl::StatusOr<Casting> ReadCasting(int number, std::string_view field,
                                    Casting unset = Casting::kSameKind);

// An argument's type: an exact one, or a weak scalar.
using ArgumentType = std::variant<DType, WeakScalar>;

// The types that weak scalars take beside the others; exact types stay. Integers out of range are
// not checked here.
std::vector<DType> ResolveWeak(absl::Span<const ArgumentType> arguments);

// np.result_type.
DType ResultType(absl::Span<const ArgumentType> arguments);

// The loop that an operation runs for some arguments.
struct ResolvedLoop {
  std::vector<DType> arguments;  // to which each is cast before the operation (16-bit floats: then
                                 // computed in float32)
  DType result;                  // as it is seen: float16 for a float16 loop
};

// `data_type` as in Ufunc: the result's type is that, arguments are cast as `casting` allows.
// Errors: DATA_TYPE_MISMATCH at `field`.
absl::StatusOr<ResolvedLoop> ResolveLoop(const OpRow& row, absl::Span<const ArgumentType> arguments,
                                         std::optional<DType> data_type, std::string_view field,
                                         Casting casting = Casting::kSameKind);

}  // namespace stride::ops
