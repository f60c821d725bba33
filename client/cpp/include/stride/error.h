// Errors of calls. The library throws no exceptions: each function that can fail returns a Result.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stride {

// gRPC's canonical codes, by number.
enum class Code {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// Such as `INVALID_ARGUMENT`.
const char* Name(Code code);

// One invalid field of the request, such as `operation.matmul.left.handle`.
struct FieldViolation {
  std::string field;
  std::string description;
};

struct Error {
  Code code = Code::kUnknown;
  std::string message;
  // A name of stride.v1.ErrorReason such as `SHAPE_MISMATCH`; empty when the client library
  // detected the error.
  std::string reason;
  // The values in the message, by name.
  std::map<std::string, std::string> metadata;
  std::vector<FieldViolation> violations;
  // When the daemon expects the same call to succeed.
  std::optional<std::chrono::milliseconds> retry_delay;

  // One paragraph for people: code, reason, message, fields.
  std::string ToString() const;
};

}  // namespace stride
