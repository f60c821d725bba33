#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "server/base/steady_time.h"
#include "server/scheduler/arrays.h"
#include "server/scheduler/core.h"
#include "server/scheduler/region_copies.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/service/download.h"
#include "server/scheduler/service/upload.h"
#include "server/scheduler/staged_copy.h"

namespace stride::scheduler {

// Writes the bytes of an upload: directly to host memory or a file, or to device memory through
// staging or from the client's own region. One thread at a time; the caller has no transaction.
class ArrayWriter {
 public:
  ArrayWriter(Core* core, Scheduler* scheduler) : core_(core), scheduler_(scheduler) {}
  ~ArrayWriter();

  // Called before Open: the bytes then come from the region by WriteShared, not by Write.
  void ShareRegion(std::shared_ptr<Region> region) { region_ = std::move(region); }
  const Region* region() const { return region_.get(); }
  // `offset` counts from the start of the allocation. Blocks until the device queue has a worker if
  // the device needs one.
  absl::Status Open(Lane& lane, const store::Allocation& target, int64_t offset,
                    SteadyTime deadline);
  absl::Status Write(std::string_view bytes);
  // Writes bytes [offset, offset + size) of the region, which may be read until Finish returns.
  absl::Status WriteShared(int64_t offset, int64_t size);
  // Blocks until all bytes are in the allocation.
  absl::Status Finish();

 private:
  absl::Status OpenStaged(uint64_t offset, SteadyTime deadline);
  absl::Status GoOn(absl::Status lost);
  absl::Status OpenShared();
  // Sends the pieces in `unsent_`; with `wait`, blocks until all copies have ended.
  absl::Status Send(bool wait);

  Core* const core_;
  Scheduler* const scheduler_;
  Lane* lane_ = nullptr;
  store::Allocation target_;       // keeps the arena mapped
  std::byte* position_ = nullptr;  // host memory
  uint64_t file_offset_ = 0;  // in the arena's file, if there is neither host memory nor staging
  std::unique_ptr<StagedWriter> staged_;
  SteadyTime deadline_;
  int num_tries_ = 0;               // attempts that a worker's death ended
  std::shared_ptr<Region> region_;  // null: the bytes come by Write
  std::unique_ptr<RegionCopies> shared_;
  std::deque<RegionCopies::Piece> unsent_;
  uint64_t next_offset_ = 0;  // in the arena, for the next bytes from the region
};

// An upload of one range: counts the bytes and passes them to the writer.
class RangedUpload : public Upload {
 public:
  RangedUpload(Core* core, Scheduler* scheduler, std::shared_ptr<session::Array> array,
               int64_t begin, int64_t end)
      : core_(core),
        scheduler_(scheduler),
        array_(std::move(array)),
        begin_(begin),
        end_(end),
        position_(begin),
        writer_(core, scheduler) {}

  int64_t remaining() const override { return end_ - position_; }
  absl::Status Write(std::string_view bytes) override;
  absl::Status WriteShared(int64_t offset, int64_t size) override;
  absl::StatusOr<v1::Array> Finish() override;
  // Called before Open; null: the call has no region.
  void ShareRegion(std::shared_ptr<Region> region) { writer_.ShareRegion(std::move(region)); }

 protected:
  // All bytes are in the array.
  virtual void Completed(TenantTransaction& transaction) = 0;
  // Hold pins the buffer from before the first byte to the end of all copies. A deletion of the
  // array in between does not unpin it.
  void Hold();
  void LetGo(TenantTransaction& transaction);

  Core* const core_;
  Scheduler* const scheduler_;
  const std::shared_ptr<session::Array> array_;
  const int64_t begin_;
  const int64_t end_;
  int64_t position_;
  ArrayWriter writer_;
  bool complete_ = false;
  bool holding_ = false;
};

// An upload of a range of a new array.
class ReceivingUpload : public RangedUpload {
 public:
  ReceivingUpload(Core* core, Scheduler* scheduler, std::shared_ptr<session::Array> array,
                  std::shared_ptr<session::Receiving> receiving, int64_t begin, int64_t end)
      : RangedUpload(core, scheduler, std::move(array), begin, end),
        receiving_(std::move(receiving)) {}
  ~ReceivingUpload() override;
  // Allocates the array's memory if no other range has done so. Blocks while memory is short.
  absl::Status Open(SteadyTime deadline);

 private:
  void Completed(TenantTransaction& transaction) override;
  const std::shared_ptr<session::Receiving> receiving_;
};

// Overwrites a range of an existing array. `task` is a host access that keeps all other accesses
// out until the end.
class OverwriteUpload : public RangedUpload {
 public:
  OverwriteUpload(Core* core, Scheduler* scheduler, std::shared_ptr<session::Array> array,
                  std::shared_ptr<Task> task, int64_t begin, int64_t end)
      : RangedUpload(core, scheduler, std::move(array), begin, end), task_(std::move(task)) {}
  ~OverwriteUpload() override;
  absl::Status Open(SteadyTime deadline);

 private:
  void Completed(TenantTransaction& transaction) override {}
  const std::shared_ptr<Task> task_;
};

class ArrayDownload : public Download {
 public:
  ArrayDownload(Core* core, Scheduler* scheduler, std::shared_ptr<ReadAccess> access,
                v1::Array description, int64_t begin, int64_t end, SteadyTime deadline,
                std::shared_ptr<Region> region = nullptr, int64_t region_offset = 0)
      : core_(core),
        scheduler_(scheduler),
        access_(std::move(access)),
        description_(std::move(description)),
        position_(begin),
        end_(end),
        deadline_(deadline),
        region_(std::move(region)),
        region_position_(region_offset) {}
  ~ArrayDownload() override;

  const v1::Array& array() const override { return description_; }
  absl::StatusOr<Chunk> Next(int64_t max_bytes) override;
  absl::StatusOr<SharedChunk> NextShared(int64_t max_bytes) override;

 private:
  absl::Status Open();
  absl::StatusOr<Chunk> NextOfFile(int64_t max_bytes);
  // Copies without a worker, from memory or a file of the daemon.
  absl::StatusOr<SharedChunk> CopyShared(int64_t max_bytes);
  // Waits for the next copy from the device; several are in flight.
  absl::StatusOr<SharedChunk> AwaitShared(int64_t max_bytes);
  SharedChunk Shared(int64_t size);

  Core* const core_;
  Scheduler* const scheduler_;
  const std::shared_ptr<ReadAccess> access_;
  const v1::Array description_;
  int64_t position_;
  const int64_t end_;
  const SteadyTime deadline_;
  bool opened_ = false;
  Lane* lane_ = nullptr;  // its worker does not end during the download
  store::Allocation source_;
  std::shared_ptr<const std::string> inline_bytes_;
  std::unique_ptr<StagedReader> staged_;
  bool from_file_ = false;
  const std::shared_ptr<Region> region_;  // null: the caller uses Next
  int64_t region_position_;
  std::unique_ptr<RegionCopies> shared_;
  int64_t num_requested_ = 0;  // bytes after position_ that were requested from the worker
};

}  // namespace stride::scheduler
