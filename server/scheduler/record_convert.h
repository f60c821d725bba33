#pragma once

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/rpc/status.pb.h"
#include "server/recovery/records.pb.h"
#include "server/store/array_info.h"

// Small values to and from journal records.
namespace stride::scheduler {

inline int64_t ToRecord(absl::Time time) {
  if (time == absl::Time() || time == absl::InfiniteFuture()) return 0;
  return absl::ToUnixNanos(time);
}
// `none` is what 0 stands for.
inline absl::Time TimeFrom(int64_t nanos, absl::Time none) {
  return nanos == 0 ? none : absl::FromUnixNanos(nanos);
}

// Bits of UseRecord.flags and DispatchRecord.flags.
inline constexpr uint32_t kUseRead = 1, kUseWrite = 2, kUseFresh = 4;

void ToRecord(const ArrayInfo& info, recovery::ArrayInfoRecord* out);
// DATA_LOSS when it describes no array.
absl::StatusOr<ArrayInfo> InfoFrom(const recovery::ArrayInfoRecord& record);

absl::Status StatusFrom(const google::rpc::Status& status);

}  // namespace stride::scheduler
