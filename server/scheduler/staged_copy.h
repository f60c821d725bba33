#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/steady_time.h"
#include "server/broker/worker.h"
#include "server/scheduler/service/download.h"

namespace stride::scheduler {

// What a dying worker cut off goes on with its successor, until it was tried this often.
inline constexpr int kMaxTransferTries = 3;

// Whether this is the worker's end, whatever ended it, and not the array's or the device's.
bool IsLostWorker(const absl::Status& status);
// Whether another try may do better: the worker has ended, or none is there at the moment.
bool MayGoOn(const absl::Status& status);

// Copies by `copy()`, again from the start when a worker's death cut it off.
template <typename Copy>
absl::Status CopyWithSuccessors(Copy copy) {
  absl::Status status;
  for (int i = 0; i < kMaxTransferTries; ++i) {
    status = copy();
    if (!MayGoOn(status)) break;
  }
  return status;
}

// Bytes into device memory through the worker's pinned staging: each slot is sent as soon as it is
// full. One thread at a time. Blocks while no slot is free.
class StagedWriter {
 public:
  // Bytes that were accepted and may not be on the device, in the slot of a worker that died.
  struct Piece {
    std::shared_ptr<broker::Worker> worker;
    broker::StagingPool::Slot slot;
    uint64_t offset;  // in the arena
    uint64_t size;
  };

  StagedWriter(std::shared_ptr<broker::Worker> worker, uint64_t arena, uint64_t offset,
               SteadyTime deadline);
  // Copies under way give their slots back when they end.
  ~StagedWriter();

  // After an error `num_accepted` tells how far it came.
  absl::Status Write(std::string_view bytes);
  // Sends the rest and waits until all is on the device.
  absl::Status Finish();

  uint64_t num_accepted() const { return num_accepted_; }
  // After an error: waits for what is under way, and takes what a successor has to write again. The
  // caller gives the slots back.
  std::vector<Piece> TakeLost();
  // Writes such a piece with this writer's worker, before any other bytes.
  absl::Status WriteAgain(const Piece& piece);
  // Where the next bytes go.
  uint64_t offset() const { return offset_ + filled_; }

 private:
  struct State {
    absl::Mutex mutex;
    int outstanding ABSL_GUARDED_BY(mutex) = 0;
    absl::Status status ABSL_GUARDED_BY(mutex);
    std::vector<Piece> lost ABSL_GUARDED_BY(mutex);
    // Nobody will take what is lost.
    bool abandoned ABSL_GUARDED_BY(mutex) = false;
  };
  void Send();
  void AwaitIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mutex);

  const std::shared_ptr<broker::Worker> worker_;
  const uint64_t arena_;
  uint64_t offset_;
  const SteadyTime deadline_;
  broker::StagingPool::Slot slot_;
  uint64_t filled_ = 0;
  uint64_t num_accepted_ = 0;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Bytes out of device memory, a few slots ahead of the reader. One thread at a time.
class StagedReader {
 public:
  StagedReader(std::shared_ptr<broker::Worker> worker, uint64_t arena, uint64_t offset,
               uint64_t size, SteadyTime deadline);
  ~StagedReader();

  // The next bytes, at most max_bytes; empty at the end. The chunk holds its slot until its lease
  // is dropped.
  absl::StatusOr<Download::Chunk> Next(uint64_t max_bytes);

 private:
  struct Piece {
    std::shared_ptr<broker::Worker> worker;
    broker::StagingPool::Slot slot;
    uint64_t size = 0;
    absl::Mutex mutex;
    bool done ABSL_GUARDED_BY(mutex) = false;
    absl::Status status ABSL_GUARDED_BY(mutex);
    ~Piece() { worker->staging().Release(slot); }
  };
  bool Request(bool wait);

  const std::shared_ptr<broker::Worker> worker_;
  const uint64_t arena_;
  uint64_t offset_;
  uint64_t remaining_;
  const SteadyTime deadline_;
  std::deque<std::shared_ptr<Piece>> ahead_;
  uint64_t consumed_ = 0;  // of the first piece
};

}  // namespace stride::scheduler
