#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/base/steady_time.h"
#include "server/store/array_info.h"
#include "stride/v1/array.pb.h"

namespace stride::engine {

class Region;

// Source of a download's bytes, e.g. one array or the parts of a sharded one. While it exists,
// later operations that write the array wait. One thread at a time.
class ByteSource {
 public:
  // Bytes in a staging slot or in the arena's mapping, valid until `lease` is dropped. They may be
  // sent without a copy.
  struct Chunk {
    std::string_view bytes;
    std::shared_ptr<const void> lease;
  };

  virtual ~ByteSource() = default;
  // Dtype and shape of the whole array.
  virtual const ArrayInfo& info() const = 0;
  // Blocks until the array is ready or has failed, or `deadline`, which also limits the waits of
  // the copies. The next byte is then the first one, also after an earlier call.
  virtual absl::Status Await(SteadyTime deadline) = 0;
  // The next bytes, at most `max_bytes`. Called only while bytes are left.
  virtual absl::StatusOr<Chunk> Next(int64_t max_bytes) = 0;
  // Copies the next bytes, at most `max_bytes`, into the region from `offset`, and returns their
  // number. A source without its own way to write a region copies from Next.
  virtual absl::StatusOr<int64_t> NextShared(const std::shared_ptr<Region>& region, int64_t offset,
                                             int64_t max_bytes);
};

// One FetchArray call or Fetch command in progress. One thread at a time. The array cannot be
// overwritten while this exists.
class Download {
 public:
  using Chunk = ByteSource::Chunk;
  // A range within the call's region. Size 0: the end.
  struct SharedChunk {
    int64_t offset = 0;
    int64_t size = 0;
  };

  // `size`: the number of bytes that the source has. `region_offset`: position of the first byte in
  // the region, which has room for all bytes; null: a call without a region.
  Download(int64_t size, std::unique_ptr<ByteSource> source,
           std::shared_ptr<Region> region = nullptr, int64_t region_offset = 0);
  ~Download();

  // Blocks until the array is ready or has failed, or `deadline`, which also limits the waits of
  // the download.
  absl::Status Await(SteadyTime deadline);
  // Await, then all bytes. May be called again after DEADLINE_EXCEEDED.
  absl::StatusOr<v1::InlineArray> Read(SteadyTime deadline);

  // The array as FetchArray describes it; empty for a Fetch command.
  const v1::Array& array() const { return array_; }
  void set_array(v1::Array array) { array_ = std::move(array); }
  // After Await: the next bytes, at most `max_bytes`; empty at the end. Blocks for the copy. A
  // caller may hold several chunks, but not indefinitely: staging has few slots.
  absl::StatusOr<Chunk> Next(int64_t max_bytes);
  // For a call with a region, instead of Next: copies the next bytes into the region and returns
  // their range. The destructor waits for writers of the region.
  absl::StatusOr<SharedChunk> NextShared(int64_t max_bytes);

 private:
  int64_t Limit(int64_t max_bytes) const;

  const int64_t size_;
  const std::shared_ptr<Region> region_;
  const int64_t region_offset_;
  const std::unique_ptr<ByteSource> source_;
  v1::Array array_;
  int64_t position_ = 0;
};

// An array without its bytes.
v1::InlineArray EmptyInline(const ArrayInfo& info);

}  // namespace stride::engine
