#include "server/wire/status.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::wire {
namespace {

// Length of the well-formed UTF-8 sequence at the start of `text`, 0 when there is none. The range
// of the second byte excludes overlong forms and surrogates.
size_t SequenceLength(absl::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  auto follows = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F)) return 0;
    return follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) return 0;
    return follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

std::string MakeUtf8(absl::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    size_t length = SequenceLength(text);
    if (length == 0) {
      result += '?';
      length = 1;
    } else {
      result.append(text.data(), length);
    }
    text.remove_prefix(length);
  }
  return result;
}

std::string Shorten(absl::string_view text) {
  if (text.size() <= kMaxStatusText) return std::string(text);
  size_t half = kMaxStatusText / 2 - 16;
  return absl::StrCat(text.substr(0, half), "\n[... cut ...]\n", text.substr(text.size() - half));
}

}  // namespace

v1::ErrorReason ReasonFor(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kFailedPrecondition:
      return v1::ERROR_REASON_KERNEL_FAULT;
    case absl::StatusCode::kResourceExhausted:
      return v1::ERROR_REASON_DEVICE_MEMORY;
    case absl::StatusCode::kUnimplemented:
      return v1::ERROR_REASON_NOT_IMPLEMENTED;
    case absl::StatusCode::kInvalidArgument:
      return v1::ERROR_REASON_INVALID_FIELD;
    case absl::StatusCode::kOutOfRange:
      return v1::ERROR_REASON_DATA_OUT_OF_RANGE;
    default:
      return v1::ERROR_REASON_INTERNAL;
  }
}

Status FromStatus(const absl::Status& status) {
  Status result;
  result.set_code(static_cast<int>(status.code()));
  if (!status.ok()) result.set_message(MakeUtf8(Shorten(status.message())));
  if (ReasonOf(status) == v1::ERROR_REASON_LINEAR_ALGEBRA) result.set_reason(ReasonOf(status));
  return result;
}

absl::Status ToStatus(const Status& status) {
  if (status.code() == 0) return absl::OkStatus();
  bool known = status.code() > 0 && status.code() <= 16;
  absl::StatusCode code =
      known ? static_cast<absl::StatusCode>(status.code()) : absl::StatusCode::kInternal;
  std::string text = Shorten(status.message());
  const bool linear_algebra =
      code == absl::StatusCode::kOutOfRange && status.reason() == v1::ERROR_REASON_LINEAR_ALGEBRA;
  const v1::ErrorReason reason = linear_algebra ? v1::ERROR_REASON_LINEAR_ALGEBRA : ReasonFor(code);
  return MakeError(code, reason, MakeUtf8(text));
}

}  // namespace stride::wire
