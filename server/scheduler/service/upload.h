#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "stride/v1/array.pb.h"

namespace stride::scheduler {

// One PutArray call in progress. One thread at a time. If it is destroyed before Finish, the bytes
// written so far stay until the lease ends, and count as part of the range.
class Upload {
 public:
  virtual ~Upload() = default;
  // Bytes of the range that were not accepted yet.
  virtual int64_t remaining() const = 0;
  // Appends bytes. Blocks while staging is full, until the deadline given at the start.
  // SIZE_MISMATCH beyond the range.
  virtual absl::Status Write(std::string_view bytes) = 0;
  // For a call with a region: appends the region's bytes [offset, offset + size). They must not
  // change until Finish returns or the upload is destroyed; the destructor waits for readers.
  virtual absl::Status WriteShared(int64_t offset, int64_t size) {
    return absl::UnimplementedError("uploads from regions");
  }
  // Blocks until all bytes are in the array. SIZE_MISMATCH when bytes are missing.
  virtual absl::StatusOr<v1::Array> Finish() = 0;
};

}  // namespace stride::scheduler
