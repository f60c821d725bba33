#include "server/session/array_description.h"

#include <cstdint>

#include "server/base/environment.h"
#include "server/session/array.h"

namespace stride::session {

bool IsPending(const Array& array) {
  return array.buffer != nullptr && array.buffer->writer != nullptr && array.status().ok() &&
         array.receiving == nullptr;
}

PendingArray Note(const Array& array) {
  return {array.name, array.info, array.create_time, array.expire_time};
}

void Describe(const PendingArray& array, v1::Array* empty) {
  empty->set_name(array.name.ToString());
  empty->set_state(v1::Array::STATE_PENDING);
  DescribeTimes(array.create_time, array.expire_time, empty);
  DescribeInfo(*array.info, empty);
}

void DescribeTimes(SteadyTime created, SteadyTime expires, v1::Array* out) {
  if (created != SteadyTime()) SetTimestamp(DateOf(created), out->mutable_create_time());
  if (expires != SteadyTime::InfiniteFuture())
    SetTimestamp(DateOf(expires), out->mutable_expire_time());
}

void DescribeInfo(const ArrayInfo& info, v1::Array* out) {
  out->set_data_type(static_cast<v1::DataType>(info.dtype));
  out->mutable_shape()->Add(info.shape.begin(), info.shape.end());
  out->mutable_strides()->Add(info.strides.begin(), info.strides.end());
  out->set_size_bytes(info.size_bytes());
}

void SetTimestamp(SteadyTime time, google::protobuf::Timestamp* out) {
  SetTimestamp(ToWallTime(time), out);
}

void SetTimestamp(absl::Time time, google::protobuf::Timestamp* out) {
  const int64_t nanos = absl::ToUnixNanos(time);
  out->set_seconds(nanos / 1000000000);
  out->set_nanos(static_cast<int32_t>(nanos % 1000000000));
}

}  // namespace stride::session
