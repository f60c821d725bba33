#include "server/scheduler/record_convert.h"

#include "absl/strings/cord.h"

namespace stride::scheduler {

void ToRecord(const ArrayInfo& info, recovery::ArrayInfoRecord* out) {
  out->set_dtype(static_cast<int32_t>(info.dtype));
  out->mutable_shape()->Add(info.shape.begin(), info.shape.end());
  out->mutable_strides()->Add(info.strides.begin(), info.strides.end());
  out->set_offset(info.offset);
}

absl::StatusOr<ArrayInfo> InfoFrom(const recovery::ArrayInfoRecord& record) {
  auto dtype = DTypeFromNumber(record.dtype());
  if (!dtype.has_value() || record.shape_size() != record.strides_size())
    return absl::DataLossError("a record describes no array");
  ArrayInfo info;
  info.dtype = *dtype;
  info.shape.assign(record.shape().begin(), record.shape().end());
  info.strides.assign(record.strides().begin(), record.strides().end());
  info.offset = record.offset();
  return info;
}

absl::Status StatusFrom(const google::rpc::Status& status) {
  absl::Status out(static_cast<absl::StatusCode>(status.code()), status.message());
  if (out.ok()) return out;
  for (const auto& detail : status.details())
    out.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  return out;
}

}  // namespace stride::scheduler
