#pragma once

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "google/protobuf/timestamp.pb.h"
#include "server/base/steady_time.h"
#include "server/session/resource_name.h"
#include "server/store/array_info.h"
#include "stride/v1/array.pb.h"

// Describes arrays to clients, from the array alone.
namespace stride::session {

struct Array;

// Description of an array that an operation will produce. It holds no array and needs no lock,
// since another thread serializes it later.
struct PendingArray {
  CatalogueName name;
  SharedInfo info;
  SteadyTime create_time, expire_time;
};
using PendingArrays = absl::InlinedVector<PendingArray, 1>;

// Whether a PendingArray describes the array completely: it is still being computed. The caller has
// a transaction of the tenant, also for Note.
bool IsPending(const Array& array);
PendingArray Note(const Array& array);
// Describes the array as of Note.
void Describe(const PendingArray& array, v1::Array* empty);

void DescribeTimes(SteadyTime created, SteadyTime expires, v1::Array* out);
void DescribeInfo(const ArrayInfo& info, v1::Array* out);
// Converts to a date.
void SetTimestamp(SteadyTime time, google::protobuf::Timestamp* out);
void SetTimestamp(absl::Time time, google::protobuf::Timestamp* out);

}  // namespace stride::session
