#include "server/scheduler/array_spec.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::scheduler {

absl::StatusOr<ArrayInfo> CheckSpec(const v1::ArraySpec& spec, int64_t max_bytes,
                                    std::string_view field) {
  std::string prefix(field);
  auto dtype = DTypeFromNumber(spec.data_type());
  if (!dtype.has_value()) {
    return InvalidField(
        v1::ERROR_REASON_INVALID_FIELD, absl::StrCat(prefix, ".data_type"),
        absl::StrCat("not a data type; use one of the DataType names. Got: ", spec.data_type()));
  }
  if (spec.shape_size() > kMaxRank) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, absl::StrCat(prefix, ".shape"),
        absl::StrCat("too many axes. Got: ", spec.shape_size(), ", limit: ", kMaxRank));
  }
  // A zero extent does not hide an overflow of the others, since strides are computed from all
  // extents.
  __int128 bytes = ItemSize(*dtype);
  for (int i = 0; i < spec.shape_size(); ++i) {
    int64_t extent = spec.shape(i);
    if (extent < 0) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, absl::StrCat(prefix, ".shape[", i, "]"),
                          absl::StrCat("an extent is not negative. Got: ", extent));
    }
    bytes *= extent > 0 ? extent : 1;
    if (bytes > max_bytes) {
      return InvalidField(
          v1::ERROR_REASON_SIZE_LIMIT, absl::StrCat(prefix, ".shape"),
          absl::StrCat("the array is larger than allowed. Limit in bytes: ", max_bytes),
          {{"limit", absl::StrCat(max_bytes)}});
    }
  }
  return Contiguous(*dtype, {spec.shape().begin(), spec.shape().end()});
}

}  // namespace stride::scheduler
