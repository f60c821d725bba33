#pragma once

#include <cstdint>

#include "google/protobuf/message.h"

// Costs of objects in the daemon's memory, including its journal. Measured, and rounded up
// (tests/unit/scheduler/quota_test.cc compares with the heap).
namespace stride::session {

inline constexpr int64_t kSessionControlBytes = 2048;
// A handle. Its buffer (store::Buffer) and its error are charged separately.
inline constexpr int64_t kArrayControlBytes = 768;
inline constexpr int64_t kAxisControlBytes = 32;
inline constexpr int64_t kNamedArrayControlBytes = 2048;  // plus four times its name
inline constexpr int64_t kUploadControlBytes = 4096;
inline constexpr int64_t kUploadRangeControlBytes = 128;
inline constexpr int64_t kJobControlBytes = 8192;
inline constexpr int64_t kJobOperationControlBytes = 3072;  // until the job has ended
inline constexpr int64_t kModuleControlBytes = 4096;
inline constexpr int64_t kFunctionControlBytes = 8192;
inline constexpr int64_t kProgramControlBytes = 4096;
inline constexpr int64_t kPlannedOperationControlBytes = 12288;  // per kind of inputs of a program

// The cost of a message in memory, and serialized in the journal, which may hold an older version
// too.
inline int64_t ControlBytesOf(const google::protobuf::Message& message) {
  // Its small members are heap blocks of their own, which costs about half as much again.
  return static_cast<int64_t>(2 * message.SpaceUsedLong() + 2 * message.ByteSizeLong());
}

}  // namespace stride::session
