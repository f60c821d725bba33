#include "stride/error.h"

namespace stride {

const char* Name(Code code) {
  static constexpr const char* kNames[] = {"OK",
                                           "CANCELLED",
                                           "UNKNOWN",
                                           "INVALID_ARGUMENT",
                                           "DEADLINE_EXCEEDED",
                                           "NOT_FOUND",
                                           "ALREADY_EXISTS",
                                           "PERMISSION_DENIED",
                                           "RESOURCE_EXHAUSTED",
                                           "FAILED_PRECONDITION",
                                           "ABORTED",
                                           "OUT_OF_RANGE",
                                           "UNIMPLEMENTED",
                                           "INTERNAL",
                                           "UNAVAILABLE",
                                           "DATA_LOSS",
                                           "UNAUTHENTICATED"};
  const auto index = static_cast<size_t>(code);
  return index < std::size(kNames) ? kNames[index] : "UNKNOWN";
}

std::string Error::ToString() const {
  std::string text = Name(code);
  if (!reason.empty()) text += " (" + reason + ")";
  text += ": " + message;
  for (const auto& [field, description] : violations) {
    // One field's description is often equal to the message.
    text += description == message ? " (field " + field + ")" : "\n  " + field + ": " + description;
  }
  if (retry_delay) text += "\n  retry in " + std::to_string(retry_delay->count()) + " ms";
  return text;
}

}  // namespace stride
