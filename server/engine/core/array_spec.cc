#include "server/engine/core/array_spec.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::engine {

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

absl::StatusOr<Bytes> CheckRange(const v1::ByteRange* range, int64_t array_bytes) {
  if (range == nullptr) return Bytes{0, array_bytes};
  if (0 <= range->begin() && range->begin() <= range->end() && range->end() <= array_bytes)
    return Bytes{range->begin(), range->end()};
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "range",
                      absl::StrCat("a range lies within the array's bytes. Array: ", array_bytes,
                                   ", range: [", range->begin(), ", ", range->end(), ")"));
}

absl::StatusOr<SteadyTime> ExpireTime(bool has_ttl, const google::protobuf::Duration& ttl,
                                      bool in_session, SteadyTime now) {
  if (!has_ttl) return SteadyTime::InfiniteFuture();
  if (in_session) {
    return InvalidField(
        v1::ERROR_REASON_INVALID_FIELD, "ttl",
        "a session's array lives as long as its session; only named arrays have a ttl");
  }
  const absl::Duration duration = absl::Seconds(ttl.seconds()) + absl::Nanoseconds(ttl.nanos());
  if (duration <= absl::ZeroDuration())
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "ttl", "a lifetime is more than 0");
  return now + duration;
}

}  // namespace stride::engine
