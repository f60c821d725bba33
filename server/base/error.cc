#include "server/base/error.h"

#include <cmath>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/rpc/error_details.pb.h"

namespace stride {
namespace {

constexpr char kDomain[] = "stride.v1";

absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

template <typename Message>
std::string TypeUrl() {
  return absl::StrCat("type.googleapis.com/", Message::descriptor()->full_name());
}

template <typename Message>
void Attach(absl::Status& status, const Message& message) {
  status.SetPayload(TypeUrl<Message>(), absl::Cord(message.SerializeAsString()));
}

template <typename Message>
bool Extract(const absl::Status& status, Message* message) {
  auto payload = status.GetPayload(TypeUrl<Message>());
  return payload.has_value() && message->ParseFromString(std::string(*payload));
}

std::string ReasonName(v1::ErrorReason reason) {
  const std::string& name = v1::ErrorReason_Name(reason);
  return std::string(absl::StripPrefix(name, "ERROR_REASON_"));
}

void AttachRetry(absl::Status& status, absl::Duration delay) {
  google::rpc::RetryInfo retry;
  int64_t nanos = absl::ToInt64Nanoseconds(delay);
  retry.mutable_retry_delay()->set_seconds(nanos / 1000000000);
  retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(nanos % 1000000000));
  Attach(status, retry);
}

}  // namespace

absl::Status MakeError(absl::StatusCode code, v1::ErrorReason reason, std::string_view text,
                       ErrorMetadata metadata) {
  absl::Status status(code, ToAbsl(text));
  google::rpc::ErrorInfo info;
  info.set_reason(ReasonName(reason));
  info.set_domain(kDomain);
  for (auto& [key, value] : metadata) (*info.mutable_metadata())[key] = value;
  Attach(status, info);
  return status;
}

absl::Status InvalidField(v1::ErrorReason reason, std::string_view field, std::string_view text,
                          ErrorMetadata metadata) {
  absl::Status status =
      MakeError(absl::StatusCode::kInvalidArgument, reason, text, std::move(metadata));
  google::rpc::BadRequest request;
  auto* violation = request.add_field_violations();
  violation->set_field(std::string(field));
  violation->set_description(std::string(text));
  Attach(status, request);
  return status;
}

absl::Status NotFound(v1::ErrorReason reason, std::string_view type, std::string_view name) {
  std::string text = absl::StrCat("no such ", ToAbsl(type), ": ", ToAbsl(name));
  absl::Status status =
      MakeError(absl::StatusCode::kNotFound, reason, text, {{"name", std::string(name)}});
  google::rpc::ResourceInfo resource;
  resource.set_resource_type(absl::StrCat("stride.v1/", ToAbsl(type)));
  resource.set_resource_name(std::string(name));
  Attach(status, resource);
  return status;
}

absl::Status TryLater(absl::StatusCode code, v1::ErrorReason reason, std::string_view text,
                      absl::Duration retry_delay, ErrorMetadata metadata) {
  absl::Status status = MakeError(code, reason, text, std::move(metadata));
  AttachRetry(status, retry_delay);
  return status;
}

absl::Status QuotaExceeded(v1::ErrorReason reason, std::string_view tenant, std::string_view text,
                           const QuotaUse& use, absl::Duration retry_delay) {
  std::string numbers =
      absl::StrCat("Quota ", ToAbsl(use.quota), ": limit ", use.limit, ", used ", use.used);
  if (use.asked > 0) absl::StrAppend(&numbers, ", asked for ", use.asked);
  absl::Status status = TryLater(absl::StatusCode::kResourceExhausted, reason,
                                 absl::StrCat(ToAbsl(text), ". ", numbers), retry_delay,
                                 {{"quota", std::string(use.quota)},
                                  {"limit", absl::StrCat(use.limit)},
                                  {"used", absl::StrCat(use.used)},
                                  {"asked", absl::StrCat(use.asked)}});
  google::rpc::QuotaFailure failure;
  auto* violation = failure.add_violations();
  violation->set_subject(absl::StrCat("tenants/", ToAbsl(tenant)));
  violation->set_description(numbers);
  Attach(status, failure);
  return status;
}

absl::Status NotImplemented(std::string_view feature, std::string_view text) {
  return MakeError(absl::StatusCode::kUnimplemented, v1::ERROR_REASON_NOT_IMPLEMENTED, text,
                   {{"feature", std::string(feature)}});
}

absl::Status AtField(absl::Status status, std::string_view field, std::string_view text) {
  google::rpc::BadRequest request;
  if (Extract(status, &request)) return status;
  auto* violation = request.add_field_violations();
  violation->set_field(std::string(field));
  violation->set_description(std::string(text));
  Attach(status, request);
  return status;
}

absl::Status PrefixField(absl::Status status, std::string_view prefix) {
  if (status.ok()) return status;
  google::rpc::BadRequest request;
  if (!Extract(status, &request)) return status;
  for (auto& violation : *request.mutable_field_violations()) {
    std::string field = absl::StrCat(ToAbsl(prefix), violation.field());
    // The fault is in the message itself: use its own path.
    if (violation.field().empty() && absl::EndsWith(field, ".")) field.pop_back();
    violation.set_field(field);
  }
  Attach(status, request);
  return status;
}

v1::ErrorReason ReasonOf(const absl::Status& status) {
  google::rpc::ErrorInfo info;
  v1::ErrorReason reason = v1::ERROR_REASON_UNSPECIFIED;
  if (!Extract(status, &info)) return reason;
  v1::ErrorReason_Parse(absl::StrCat("ERROR_REASON_", info.reason()), &reason);
  return reason;
}

std::string ReasonNameOf(const absl::Status& status) {
  google::rpc::ErrorInfo info;
  return Extract(status, &info) ? info.reason() : "";
}

std::string MetadataOf(const absl::Status& status, std::string_view key) {
  google::rpc::ErrorInfo info;
  if (!Extract(status, &info)) return "";
  auto found = info.metadata().find(std::string(key));
  return found == info.metadata().end() ? "" : found->second;
}

absl::Status WithText(const absl::Status& status, std::string_view text) {
  absl::Status result(status.code(), ToAbsl(text));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { result.SetPayload(url, payload); });
  return result;
}

}  // namespace stride
