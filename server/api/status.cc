#include "server/api/status.h"

#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "google/rpc/error_details.pb.h"
#include "server/api/log.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

constexpr char kErrorInfoUrl[] = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr char kRetryInfoUrl[] = "type.googleapis.com/google.rpc.RetryInfo";
constexpr char kBadRequestUrl[] = "type.googleapis.com/google.rpc.BadRequest";

// Together they keep the text (percent-encoded), its second copy in the details (base64: a third
// more) and the framing below 8 KiB.
constexpr size_t kTrailerText = 2000;
constexpr size_t kTrailerEncodedText = 3000;
constexpr size_t kTrailerDetails = 3200;
constexpr size_t kTrailerDescription = 300;

// The length of the UTF-8 character at the front; 0 when it is invalid.
size_t CharacterSize(std::string_view text) {
  unsigned char lead = text[0];
  size_t size = lead < 0x80                   ? 1
                : lead >= 0xc2 && lead < 0xe0 ? 2
                : lead >= 0xe0 && lead < 0xf0 ? 3
                : lead >= 0xf0 && lead < 0xf5 ? 4
                                              : 0;
  if (size == 0 || size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  unsigned char second = size > 1 ? text[1] : 0;
  bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  bool surrogate = lead == 0xed && second >= 0xa0;
  bool beyond = lead == 0xf4 && second >= 0x90;
  return overlong || surrogate || beyond ? 0 : size;
}

// Length of the text's prefix that fits a trailer, where everything but plain ASCII takes three
// bytes.
size_t TrailerTextSize(absl::string_view text) {
  size_t encoded = 0;
  for (size_t i = 0; i < text.size() && i < kTrailerText; ++i) {
    encoded += text[i] >= 0x20 && text[i] <= 0x7e && text[i] != '%' ? 1 : 3;
    if (encoded > kTrailerEncodedText) return i;
  }
  return kTrailerText;
}

// The status in a form for clients: internal errors lose their text.
absl::Status Presentable(const absl::Status& status) {
  if (status.ok() || status.GetPayload(kErrorInfoUrl).has_value()) return status;
  switch (status.code()) {
    case absl::StatusCode::kCancelled:
      return MakeError(status.code(), v1::ERROR_REASON_CANCELLED, "the call was cancelled");
    case absl::StatusCode::kDeadlineExceeded:
      return MakeError(status.code(), v1::ERROR_REASON_DEADLINE,
                       "the deadline passed before the work was done");
    default:
      LogError("internal error shown to a client as INTERNAL: " + status.ToString());
      return MakeError(absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL,
                       "an error inside the daemon; its log has the cause");
  }
}

// Texts inside the details have the same limit as the text itself.
void CutDescriptions(google::rpc::Status* status, size_t max_bytes) {
  for (auto& detail : *status->mutable_details()) {
    google::rpc::BadRequest request;
    if (detail.type_url() != kBadRequestUrl || !request.ParseFromString(detail.value())) continue;
    for (auto& violation : *request.mutable_field_violations()) {
      violation.set_description(CutText(violation.description(), max_bytes));
    }
    detail.set_value(request.SerializeAsString());
  }
}

google::rpc::Status Copy(const absl::Status& status, size_t max_text) {
  google::rpc::Status result;
  result.set_code(static_cast<int>(status.code()));
  absl::string_view text = status.message();
  result.set_message(CutText({text.data(), text.size()}, max_text));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    auto* detail = absl::StartsWith(url, kErrorInfoUrl) ? nullptr : result.add_details();
    if (detail == nullptr) return;
    detail->set_type_url(std::string(url));
    detail->set_value(std::string(payload));
  });
  return result;
}

// The ErrorInfo comes first: clients need it most, and it is dropped last.
void PutErrorInfoFirst(const absl::Status& status, google::rpc::Status* result) {
  auto payload = status.GetPayload(kErrorInfoUrl);
  if (!payload.has_value()) return;
  auto* detail = result->add_details();
  detail->set_type_url(kErrorInfoUrl);
  detail->set_value(std::string(*payload));
  result->mutable_details()->SwapElements(0, result->details_size() - 1);
}

// Metadata values repeat the text; drop long ones (a compiler log) to keep the reason.
void DropMetadata(google::rpc::Status* status) {
  google::rpc::ErrorInfo info;
  if (status->details_size() == 0 || !info.ParseFromString(status->details(0).value())) return;
  info.clear_metadata();
  status->mutable_details(0)->set_value(info.SerializeAsString());
}

void FitTrailer(google::rpc::Status* status) {
  CutDescriptions(status, kTrailerDescription);
  if (status->ByteSizeLong() > kTrailerDetails) DropMetadata(status);
  while (status->ByteSizeLong() > kTrailerDetails && status->details_size() > 1) {
    status->mutable_details()->RemoveLast();
  }
}

}  // namespace

std::string CutText(std::string_view text, size_t max_bytes) {
  std::string out;
  out.reserve(std::min(text.size(), max_bytes));
  while (!text.empty()) {
    size_t size = CharacterSize(text);
    std::string_view character = size == 0 ? std::string_view("?") : text.substr(0, size);
    if (out.size() + character.size() > max_bytes) return out + " [cut]";
    out += character;
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

google::rpc::Status ToRpcStatus(const absl::Status& status, size_t max_text) {
  absl::Status shown = Presentable(status);
  google::rpc::Status result = Copy(shown, max_text);
  PutErrorInfoFirst(shown, &result);
  return result;
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::Status details = ToRpcStatus(status, TrailerTextSize(status.message()));
  FitTrailer(&details);
  return grpc::Status(static_cast<grpc::StatusCode>(details.code()), details.message(),
                      details.SerializeAsString());
}

absl::Duration RetryDelayOf(const absl::Status& status) {
  google::rpc::RetryInfo retry;
  auto payload = status.GetPayload(kRetryInfoUrl);
  if (!payload.has_value() || !retry.ParseFromString(std::string(*payload)))
    return absl::Seconds(-1);
  return absl::Seconds(retry.retry_delay().seconds()) +
         absl::Nanoseconds(retry.retry_delay().nanos());
}

}  // namespace stride::api
