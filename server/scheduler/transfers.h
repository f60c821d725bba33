#pragma once

#include <cstdint>
#include <memory>

#include "server/scheduler/arrays.h"
#include "server/scheduler/core.h"
#include "server/scheduler/engine.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/staged_copy.h"

namespace stride::scheduler {

// Where the bytes of an upload go: straight into host memory, or through staging into device
// memory.
class ArrayWriter {
 public:
  ArrayWriter(Core* core, Scheduler* scheduler) : core_(core), scheduler_(scheduler) {}
  ~ArrayWriter();

  // `offset` is from the start of the allocation.
  absl::Status Open(Lane& lane, const store::Allocation& target, int64_t offset,
                    absl::Time deadline);
  absl::Status Write(std::string_view bytes);
  // Waits until all is there.
  absl::Status Finish();

 private:
  absl::Status OpenStaged(uint64_t offset, absl::Time deadline);
  absl::Status GoOn(absl::Status lost);

  Core* const core_;
  Scheduler* const scheduler_;
  Lane* lane_ = nullptr;
  store::Allocation target_;       // keeps the mapping
  std::byte* position_ = nullptr;  // host memory
  uint64_t file_offset_ = 0;       // where there is neither that nor staging
  std::unique_ptr<StagedWriter> staged_;
  absl::Time deadline_;
  int num_tries_ = 0;  // workers that died
};

// Counts the bytes of one range and passes them on.
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
  absl::StatusOr<v1::Array> Finish() override;

 protected:
  // All bytes are in the array. Caller holds the lock.
  virtual void Completed() = 0;
  // From before the first byte to the end of all copies the buffer stays where it is, also when its
  // array is deleted meanwhile. Caller holds the lock.
  void Hold();
  void LetGo();

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

// A range of a new array.
class ReceivingUpload : public RangedUpload {
 public:
  ReceivingUpload(Core* core, Scheduler* scheduler, std::shared_ptr<session::Array> array,
                  std::shared_ptr<session::Receiving> receiving, int64_t begin, int64_t end)
      : RangedUpload(core, scheduler, std::move(array), begin, end),
        receiving_(std::move(receiving)) {}
  ~ReceivingUpload() override;
  // Gets the array its memory if no other range did yet.
  absl::Status Open(absl::Time deadline);

 private:
  void Completed() override;
  const std::shared_ptr<session::Receiving> receiving_;
};

// A range of an array that is there, held against all others meanwhile.
class OverwriteUpload : public RangedUpload {
 public:
  OverwriteUpload(Core* core, Scheduler* scheduler, std::shared_ptr<session::Array> array,
                  std::shared_ptr<Task> task, int64_t begin, int64_t end)
      : RangedUpload(core, scheduler, std::move(array), begin, end), task_(std::move(task)) {}
  ~OverwriteUpload() override;
  absl::Status Open(absl::Time deadline);

 private:
  void Completed() override {}
  const std::shared_ptr<Task> task_;
};

class ArrayDownload : public Download {
 public:
  ArrayDownload(Core* core, Scheduler* scheduler, std::shared_ptr<ReadAccess> access,
                v1::Array description, int64_t begin, int64_t end, absl::Time deadline)
      : core_(core),
        scheduler_(scheduler),
        access_(std::move(access)),
        description_(std::move(description)),
        position_(begin),
        end_(end),
        deadline_(deadline) {}
  ~ArrayDownload() override;

  const v1::Array& array() const override { return description_; }
  absl::StatusOr<Chunk> Next(int64_t max_bytes) override;

 private:
  absl::Status Open();
  absl::StatusOr<Chunk> NextOfFile(int64_t max_bytes);

  Core* const core_;
  Scheduler* const scheduler_;
  const std::shared_ptr<ReadAccess> access_;
  const v1::Array description_;
  int64_t position_;
  const int64_t end_;
  const absl::Time deadline_;
  bool opened_ = false;
  Lane* lane_ = nullptr;  // whose worker is used
  store::Allocation source_;
  std::shared_ptr<const std::string> inline_bytes_;
  std::unique_ptr<StagedReader> staged_;
  bool from_file_ = false;
};

}  // namespace stride::scheduler
