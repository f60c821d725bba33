#include "server/engine/persistence/record_convert.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/cord.h"

namespace stride::engine {

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

void ToRecord(const std::vector<ops::Input>& inputs,
              google::protobuf::RepeatedPtrField<recovery::InputRecord>* out) {
  for (const ops::Input& input : inputs) {
    recovery::InputRecord* record = out->Add();
    if (input.has_value()) ToRecord(*input, record->mutable_info());
  }
}

std::vector<ops::Input> InputsFrom(
    const google::protobuf::RepeatedPtrField<recovery::InputRecord>& records) {
  std::vector<ops::Input> inputs;
  for (const recovery::InputRecord& record : records) {
    auto info = InfoFrom(record.info());
    inputs.push_back(record.has_info() && info.ok() ? ops::Input(*std::move(info)) : std::nullopt);
  }
  return inputs;
}

void SetStatus(const absl::Status& status, google::rpc::Status* out) {
  out->set_code(static_cast<int>(status.code()));
  out->set_message(std::string(status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    google::protobuf::Any* detail = out->add_details();
    detail->set_type_url(std::string(url));
    detail->set_value(std::string(payload));
  });
}

absl::Status StatusFrom(const google::rpc::Status& status) {
  absl::Status out(static_cast<absl::StatusCode>(status.code()), status.message());
  if (out.ok()) return out;
  for (const auto& detail : status.details())
    out.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  return out;
}

}  // namespace stride::engine
