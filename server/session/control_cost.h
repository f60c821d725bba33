#pragma once

#include <cstdint>

#include "google/protobuf/message.h"

// Costs of things to the daemon: memory of its own and of its journal. Measured, and rounded
// up (tests/unit/scheduler/quota_test.cc compares with the heap).
namespace stride::session {

inline constexpr int64_t kSessionControlBytes = 2048;
// A handle. Its buffer counts apart (store::Buffer), and so does its error.
inline constexpr int64_t kArrayControlBytes = 768;
inline constexpr int64_t kAxisControlBytes = 32;
inline constexpr int64_t kNamedArrayControlBytes = 2048;  // and four times its name
inline constexpr int64_t kUploadControlBytes = 4096;
inline constexpr int64_t kUploadRangeControlBytes = 128;
inline constexpr int64_t kJobControlBytes = 8192;
inline constexpr int64_t kJobOperationControlBytes = 3072;  // until the job has ended
inline constexpr int64_t kModuleControlBytes = 4096;
inline constexpr int64_t kFunctionControlBytes = 8192;
inline constexpr int64_t kProgramControlBytes = 4096;
inline constexpr int64_t kPlannedOperationControlBytes =
    12288;  // of a program, for one kind of inputs

// A message in memory, and serialized in the journal, which may have an older one too.
inline int64_t ControlBytesOf(const google::protobuf::Message& message) {
  // Its small parts are blocks of the heap of their own, which costs about half as much again.
  return static_cast<int64_t>(2 * message.SpaceUsedLong() + 2 * message.ByteSizeLong());
}

}  // namespace stride::session
