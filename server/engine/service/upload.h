#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "stride/v1/array.pb.h"

namespace stride::engine {

class Region;

// Destination of an upload's bytes, e.g. the memory of one array or the parts of a sharded one. One
// thread at a time.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // Appends bytes. Blocks while staging is full.
  virtual absl::Status Write(std::string_view bytes) = 0;
  // Appends the region's bytes [offset, offset + size), which lie within it and may be read until
  // Finish returns. A sink without its own way to read a region copies them through Write.
  virtual absl::Status WriteShared(const Region& region, int64_t offset, int64_t size);
  // Blocks until all bytes are in place. May be called again after an error.
  virtual absl::Status Finish() = 0;
};

// Right to write a range of an array: of a new one, whose upload may be resumed, or of an existing
// one, which it overwrites. The destructor ends it. One thread at a time.
class WriteAccess {
 public:
  virtual ~WriteAccess() = default;
  // All bytes of the range are in the array.
  virtual absl::StatusOr<v1::Array> Complete() = 0;
  // Only the first `size` bytes of the range are in the array.
  virtual void Keep(int64_t size) {}
};

// One PutArray call in progress. One thread at a time. If it is destroyed before Finish, the bytes
// written so far stay until the lease ends, and count as part of the range.
class Upload {
 public:
  // `size`: bytes of the range. `region`: null for a call without a region.
  Upload(int64_t size, std::unique_ptr<WriteAccess> access, std::unique_ptr<ByteSink> sink,
         std::shared_ptr<Region> region = nullptr);
  ~Upload();

  // Bytes of the range that were not accepted yet.
  int64_t remaining() const { return size_ - written_; }
  // Appends bytes. Blocks while staging is full, until the deadline given at the start.
  // SIZE_MISMATCH beyond the range.
  absl::Status Write(std::string_view bytes);
  // For a call with a region: appends the region's bytes [offset, offset + size). They must not
  // change until Finish returns or the upload is destroyed; the destructor waits for readers.
  absl::Status WriteShared(int64_t offset, int64_t size);
  // Blocks until all bytes are in the array. SIZE_MISMATCH when bytes are missing.
  absl::StatusOr<v1::Array> Finish();

 private:
  absl::Status CheckSize(const char* field, int64_t size) const;

  const int64_t size_;
  const std::shared_ptr<Region> region_;
  const std::unique_ptr<ByteSink> sink_;
  const std::unique_ptr<WriteAccess> access_;  // ends before the sink does
  int64_t written_ = 0;
  bool in_place_ = false;  // the sink has finished
  bool complete_ = false;
};

}  // namespace stride::engine
