#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/base/steady_time.h"
#include "server/engine/core/array_spec.h"
#include "server/engine/memory/staged_copy.h"
#include "server/engine/service/download.h"
#include "server/engine/transfers/host_access.h"
#include "server/engine/transfers/region_copies.h"

namespace stride::engine {

// A range of an array that has one buffer: from host memory or a file, or from device
// memory through staging or straight into a region. Continues with the next worker after a worker's
// death. The caller has no transaction.
class BufferSource : public ByteSource {
 public:
  BufferSource(Core* core, Scheduler* scheduler, std::shared_ptr<ReadAccess> access, Bytes range)
      : core_(core),
        scheduler_(scheduler),
        access_(std::move(access)),
        begin_(range.begin),
        end_(range.end),
        position_(range.begin) {}
  ~BufferSource() override;

  // --- ByteSource ---
  const ArrayInfo& info() const override { return access_->array().info; }
  absl::Status Await(SteadyTime deadline) override;
  absl::StatusOr<Chunk> Next(int64_t max_bytes) override;
  absl::StatusOr<int64_t> NextShared(const std::shared_ptr<Region>& region, int64_t offset,
                                     int64_t max_bytes) override;

 private:
  // Finds the bytes, and begins copies from device memory: into `region`, or staging if null.
  absl::Status Open(const std::shared_ptr<Region>& region);
  absl::Status BeginCopies(DeviceQueue& queue, const std::shared_ptr<Region>& region);
  void Close();
  // Calls `copy()` until it succeeds, each time with a new worker.
  template <typename Copy>
  absl::Status WithWorker(const std::shared_ptr<Region>& region, Copy copy);
  absl::Status NextFromFile(int64_t max_bytes, Chunk* chunk);
  // Waits for the next copy into the region; several are in flight.
  absl::Status AwaitCopy(int64_t offset, int64_t max_bytes, int64_t* size);
  // Position in the arena, or in the array's inline bytes.
  uint64_t Offset() const;
  const char* bytes() const;  // in host memory

  Core* const core_;
  Scheduler* const scheduler_;
  const std::shared_ptr<ReadAccess> access_;
  const int64_t begin_, end_;
  int64_t position_;
  SteadyTime deadline_;
  bool opened_ = false;
  DeviceQueue* queue_ = nullptr;  // its worker does not end during the download
  store::Allocation source_;
  std::shared_ptr<const std::string> inline_bytes_;
  std::unique_ptr<StagedReader> staged_;
  bool from_file_ = false;
  std::unique_ptr<RegionCopies> shared_;
  int64_t num_requested_ = 0;  // bytes after position_ that were requested from the worker
};

}  // namespace stride::engine
