#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/rpc/status.pb.h"
#include "server/base/environment.h"
#include "server/ops/plan.h"
#include "server/recovery/records.pb.h"
#include "server/store/array_info.h"

// Conversion of small values to and from journal records.
namespace stride::engine {

// Deadlines and intervals: nanoseconds of the steady clock, which advances also while no daemon
// runs.
inline int64_t ToRecord(SteadyTime time) {
  if (time == SteadyTime() || time == SteadyTime::InfiniteFuture()) return 0;
  return absl::ToInt64Nanoseconds(time.since_boot());
}
// Dates, and all times that outlive a reboot: nanoseconds since 1970.
inline int64_t DateToRecord(SteadyTime time) {
  if (time == SteadyTime() || time == SteadyTime::InfiniteFuture()) return 0;
  return absl::ToUnixNanos(DateOf(time));
}
// Reads both kinds: no machine runs for 31 years, and no date is before 2001. Returns `none` for 0.
inline SteadyTime TimeFrom(int64_t nanos, SteadyTime none) {
  constexpr int64_t kFirstDate = 1'000'000'000'000'000'000;
  if (nanos == 0) return none;
  return nanos >= kFirstDate ? FromWallTime(absl::FromUnixNanos(nanos))
                             : SteadyTime::SinceBoot(absl::Nanoseconds(nanos));
}

void ToRecord(const ArrayInfo& info, recovery::ArrayInfoRecord* out);
// DATA_LOSS if the record describes no valid array.
absl::StatusOr<ArrayInfo> InfoFrom(const recovery::ArrayInfoRecord& record);

// Scalars have no description.
void ToRecord(const std::vector<ops::Input>& inputs,
              google::protobuf::RepeatedPtrField<recovery::InputRecord>* out);
std::vector<ops::Input> InputsFrom(
    const google::protobuf::RepeatedPtrField<recovery::InputRecord>& records);

// `out` is empty.
void SetStatus(const absl::Status& status, google::rpc::Status* out);
absl::Status StatusFrom(const google::rpc::Status& status);

}  // namespace stride::engine
