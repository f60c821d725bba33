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
#include "server/engine/service/download.h"

namespace stride::engine {

// Attempts for a transfer, each with a new worker after the death of the last.
inline constexpr int kMaxTransferTries = 3;

// Whether the worker has ended, for any reason; the array and the device may be usable.
bool IsLostWorker(const absl::Status& status);
// Whether another attempt may succeed: the worker has ended, or none is available now.
bool MayGoOn(const absl::Status& status);

// UNAVAILABLE: the worker has ended, and another attempt may succeed.
absl::Status LostWorker();

// Calls `copy()`, and again from the start if the worker's death interrupted it.
template <typename Copy>
absl::Status CopyWithSuccessors(Copy copy) {
  absl::Status status;
  for (int i = 0; i < kMaxTransferTries; ++i) {
    status = copy();
    if (!MayGoOn(status)) break;
  }
  return status;
}

// Writes bytes to device memory through the worker's pinned staging memory. Sends each slot as soon
// as it is full. One thread at a time. Blocks while no slot is free.
class StagedWriter {
 public:
  // Accepted bytes that may not be on the device, in the slot of a worker that died.
  struct Piece {
    std::shared_ptr<broker::Worker> worker;
    broker::StagingPool::Slot slot;
    uint64_t offset;  // within the arena
    uint64_t size;
  };

  StagedWriter(std::shared_ptr<broker::Worker> worker, uint64_t arena, uint64_t offset,
               SteadyTime deadline);
  // Does not block: copies in flight release their slots when they end.
  ~StagedWriter();

  // After an error, num_accepted() is the number of bytes that were taken.
  absl::Status Write(std::string_view bytes);
  // Sends the rest and blocks until all bytes are on the device.
  absl::Status Finish();

  uint64_t num_accepted() const { return num_accepted_; }
  // After an error: blocks until all copies have ended, and takes the pieces to write again with
  // the next worker. The caller releases their slots.
  std::vector<Piece> TakeLost();
  // Writes a lost piece with this writer's worker, before any other bytes.
  absl::Status WriteAgain(const Piece& piece);
  // The position of the next bytes, in the arena.
  uint64_t offset() const { return offset_ + filled_; }

 private:
  struct State {
    absl::Mutex mutex;
    int outstanding ABSL_GUARDED_BY(mutex) = 0;
    absl::Status status ABSL_GUARDED_BY(mutex);
    std::vector<Piece> lost ABSL_GUARDED_BY(mutex);
    // The writer has ended: failed copies release their slots themselves.
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

// Reads bytes from device memory, a few slots ahead of its caller. One thread at a time.
class StagedReader {
 public:
  StagedReader(std::shared_ptr<broker::Worker> worker, uint64_t arena, uint64_t offset,
               uint64_t size, SteadyTime deadline);
  ~StagedReader();

  // The next bytes, at most max_bytes; empty at the end. The chunk holds its slot until its lease
  // is dropped.
  absl::StatusOr<ByteSource::Chunk> Next(uint64_t max_bytes);

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
  uint64_t consumed_ = 0;  // bytes of ahead_.front() that were returned
};

}  // namespace stride::engine
