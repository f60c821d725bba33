#pragma once

#include <cuda.h>

#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/wire/plan.pb.h"
#include "server/worker/cuda/driver/driver.h"

namespace stride::cuda {

// The texture objects of a device's launches. A texture uses its array's memory where the device's
// alignment rules allow that: texels by number, and images of two axes. Others get memory of their
// own, an image as a CUDA array, to which each launch copies in stream order. Objects are cached
// for later launches of the same array, until its arena is unmapped or there are too many. Not
// thread-safe: used by the command loop.
class TextureTable {
 public:
  // The device's rules, in bytes and texels.
  struct Limits {
    uint64_t alignment = 512;
    uint64_t pitch_alignment = 32;
    uint64_t max_pitched_width = 131072;
    uint64_t max_pitched_height = 65000;
    uint64_t max_pitch = 2097120;
  };
  static Limits ReadLimits(const Driver& driver, CUdevice device);

  TextureTable(const Driver& driver, CUstream stream, const Limits& limits)
      : driver_(driver), stream_(stream), limits_(limits) {}
  // Call after the stream has ended.
  ~TextureTable();
  TextureTable(const TextureTable&) = delete;
  TextureTable& operator=(const TextureTable&) = delete;

  // Bytes from the texture's first byte to the end of its last texel.
  static absl::StatusOr<uint64_t> BytesOf(const wire::Texture& texture);

  // Call before the first texture of each launch: objects of earlier launches may be destroyed once
  // the stream has completed them.
  void BeginLaunch() { ++launch_; }
  // The handle for the launch that is enqueued next. `address` is that of the texture's array,
  // whose texels all lie in one arena.
  absl::StatusOr<CUtexObject> Take(const wire::Texture& texture, CUdeviceptr address);
  // Destroys textures over an arena. The device has finished its use of them.
  void Forget(uint64_t arena);

  int size() const { return static_cast<int>(entries_.size()); }
  uint64_t copied_bytes() const { return copied_bytes_; }

  static constexpr size_t kMaxTextures = 256;
  // Limit for cached copies; a launch may need more.
  static constexpr uint64_t kMaxCopiedBytes = 256 << 20;

 private:
  struct Entry {
    std::string key;
    uint64_t arena = 0;
    uint64_t launch = 0;  // the last launch that used it
    CUtexObject object = 0;
    CUarray image = nullptr;    // the copy of an image
    CUdeviceptr texels = 0;     // the copy of texels by number
    uint64_t copied_bytes = 0;  // bytes of either copy
  };
  using Entries = std::list<Entry>;

  bool LiesOver(const wire::Texture& texture, CUdeviceptr address) const;
  absl::Status Make(const wire::Texture& texture, CUdeviceptr address, Entry* entry);
  absl::Status Copy(const wire::Texture& texture, CUdeviceptr from, const Entry& entry);
  // Makes room for one more with a copy of this many bytes; waits for the stream if necessary.
  absl::Status MakeRoom(uint64_t bytes);
  void Destroy(Entry* entry);
  Entries::iterator Erase(Entries::iterator entry);

  const Driver& driver_;
  const CUstream stream_;
  const Limits limits_;
  Entries entries_;
  std::unordered_map<std::string, Entries::iterator> known_;
  uint64_t launch_ = 0;
  uint64_t copied_bytes_ = 0;
};

}  // namespace stride::cuda
