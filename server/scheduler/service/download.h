#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/base/steady_time.h"
#include "stride/v1/array.pb.h"

namespace stride::scheduler {

// One FetchArray call in progress. One thread at a time. The array cannot be overwritten while this
// exists.
class Download {
 public:
  virtual ~Download() = default;
  virtual const v1::Array& array() const = 0;
  // Bytes in a staging slot or in the arena's mapping, valid until `lease` is dropped. They may be
  // sent without a copy.
  struct Chunk {
    std::string_view bytes;
    std::shared_ptr<const void> lease;
  };
  // The next bytes, at most `max_bytes`; empty at the end. Blocks for the copy. A caller may hold
  // several chunks, but not indefinitely: staging has few slots.
  virtual absl::StatusOr<Chunk> Next(int64_t max_bytes) = 0;
  // A range within the call's region. Size 0: the end.
  struct SharedChunk {
    int64_t offset = 0;
    int64_t size = 0;
  };
  // For a call with a region, instead of Next: copies the next bytes into the region and returns
  // their range. The destructor waits for writers of the region.
  virtual absl::StatusOr<SharedChunk> NextShared(int64_t max_bytes) {
    return absl::UnimplementedError("downloads into regions");
  }
};

// An accepted Fetch command: reads the array as the operations accepted before it leave it. Later
// operations that write the array wait until this is dropped. One thread at a time.
class InlineFetch {
 public:
  virtual ~InlineFetch() = default;
  // Waits for the array and returns its bytes. May be called again after DEADLINE_EXCEEDED.
  virtual absl::StatusOr<v1::InlineArray> Read(SteadyTime deadline) = 0;
};

}  // namespace stride::scheduler
