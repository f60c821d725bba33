#pragma once

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "google/protobuf/timestamp.pb.h"
#include "server/base/steady_time.h"
#include "server/session/resource_name.h"
#include "server/store/array_info.h"
#include "stride/v1/array.pb.h"

// What a client is told of an array, as far as it needs no more than the array itself.
namespace stride::session {

struct Array;

// Of an array that an operation has yet to make. It holds no array and needs no lock: it is written
// out later, by another thread.
struct PendingArray {
  CatalogueName name;
  SharedInfo info;
  SteadyTime create_time, expire_time;
};
using PendingArrays = absl::InlinedVector<PendingArray, 1>;

// Whether that is all there is to report of it. The caller has a transaction, as for Note.
bool IsPending(const Array& array);
PendingArray Note(const Array& array);
// As it was when it was noted.
void Describe(const PendingArray& array, v1::Array* empty);

void DescribeTimes(SteadyTime created, SteadyTime expires, v1::Array* out);
void DescribeInfo(const ArrayInfo& info, v1::Array* out);
// As a date.
void SetTimestamp(SteadyTime time, google::protobuf::Timestamp* out);
void SetTimestamp(absl::Time time, google::protobuf::Timestamp* out);

}  // namespace stride::session
