#include "server/ops/range_length.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::ops {
namespace {

constexpr double kMaxLength = 0x1p62;

absl::Status TooLong(std::string_view field) {
  return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, field,
                      "the range has too many elements for an array");
}

absl::Status ZeroStep(std::string_view field) {
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, absl::StrCat(std::string(field), ".step"),
                      "the step of a range must not be zero");
}

absl::StatusOr<int64_t> IntegerLength(Integer start, Integer stop, Integer step,
                                      std::string_view field) {
  if (step == 0) return ZeroStep(field);
  Integer distance = step > 0 ? stop - start : start - stop;
  if (distance <= 0) return 0;
  Integer stride = step > 0 ? step : -step;
  Integer length = (distance + stride - 1) / stride;
  if (length > static_cast<Integer>(kMaxLength)) return TooLong(field);
  return static_cast<int64_t>(length);
}

}  // namespace

absl::StatusOr<int64_t> RangeLength(const WeakScalar& start, const WeakScalar& stop,
                                    const WeakScalar& step, std::string_view field) {
  const auto* a = std::get_if<Integer>(&start);
  const auto* b = std::get_if<Integer>(&stop);
  const auto* c = std::get_if<Integer>(&step);
  if (a != nullptr && b != nullptr && c != nullptr) return IntegerLength(*a, *b, *c, field);
  double stride = RealOf(step);
  if (stride == 0) return ZeroStep(field);
  double length = std::ceil((RealOf(stop) - RealOf(start)) / stride);
  if (std::isnan(length)) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                        "the bounds of a range must be numbers, not NaN");
  }
  if (length > kMaxLength) return TooLong(field);
  return static_cast<int64_t>(std::max(length, 0.0));
}

}  // namespace stride::ops
