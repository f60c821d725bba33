#include "server/engine/memory/staged_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "server/base/environment.h"
#include "server/base/error.h"

namespace stride::engine {
namespace {

// Copies in flight for one reader: enough to keep the copy engine busy while earlier bytes are sent
// to the client.
constexpr size_t kPiecesAhead = 4;

absl::Status NoSlot(const broker::Worker& worker) {
  if (!worker.alive()) {
    return TryLater(absl::StatusCode::kUnavailable, v1::ERROR_REASON_WORKER_LOST,
                    "the device process was lost during the transfer; try again",
                    absl::Milliseconds(200));
  }
  return MakeError(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE,
                   "the deadline passed while the transfer waited for staging memory");
}

}  // namespace

bool IsLostWorker(const absl::Status& status) {
  return ReasonOf(status) == v1::ERROR_REASON_WORKER_LOST ||
         ReasonOf(status) == v1::ERROR_REASON_KERNEL_FAULT;
}

absl::Status LostWorker() {
  return TryLater(absl::StatusCode::kUnavailable, v1::ERROR_REASON_WORKER_LOST,
                  "the device process was lost; try again", absl::Milliseconds(200));
}

bool MayGoOn(const absl::Status& status) {
  return absl::IsUnavailable(status) || IsLostWorker(status);
}

StagedWriter::StagedWriter(std::shared_ptr<broker::Worker> worker, uint64_t arena, uint64_t offset,
                           SteadyTime deadline)
    : worker_(std::move(worker)), arena_(arena), offset_(offset), deadline_(deadline) {}

StagedWriter::~StagedWriter() {
  if (slot_) worker_->staging().Release(slot_);
  absl::MutexLock lock(&state_->mutex);
  state_->abandoned = true;
  for (const Piece& piece : std::exchange(state_->lost, {}))
    piece.worker->staging().Release(piece.slot);
}

absl::Status StagedWriter::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    {
      absl::MutexLock lock(&state_->mutex);
      if (!state_->status.ok()) return state_->status;
    }
    if (!slot_) {
      slot_ = worker_->staging().Acquire(deadline_);
      if (!slot_) return NoSlot(*worker_);
      filled_ = 0;
    }
    uint64_t count = std::min<uint64_t>(bytes.size(), slot_.size - filled_);
    std::memcpy(slot_.data + filled_, bytes.data(), count);
    filled_ += count;
    num_accepted_ += count;
    bytes.remove_prefix(count);
    if (filled_ == slot_.size) Send();
  }
  return absl::OkStatus();
}

void StagedWriter::Send() {
  {
    absl::MutexLock lock(&state_->mutex);
    ++state_->outstanding;
  }
  // The slot is released when the device has read it, also after the end of this writer. After a
  // failed copy it is released when its bytes were sent again.
  auto done = [state = state_,
               piece = Piece{worker_, slot_, offset_, filled_}](absl::Status status) {
    absl::MutexLock lock(&state->mutex);
    if (status.ok() || state->abandoned) {
      piece.worker->staging().Release(piece.slot);
    } else {
      state->lost.push_back(piece);
    }
    --state->outstanding;
    if (state->status.ok()) state->status = std::move(status);
  };
  worker_->Copy(/*to_device=*/true, arena_, offset_, slot_.offset, filled_, std::move(done));
  offset_ += filled_;
  slot_ = {};
  filled_ = 0;
}

void StagedWriter::AwaitIdle() {
  auto idle = [this] {
    state_->mutex.AssertHeld();
    return state_->outstanding == 0;
  };
  Await(state_->mutex, absl::Condition(&idle), SteadyTime::InfiniteFuture());
}

absl::Status StagedWriter::Finish() {
  if (slot_ && filled_ > 0) Send();
  absl::MutexLock lock(&state_->mutex);
  AwaitIdle();
  return state_->status;
}

std::vector<StagedWriter::Piece> StagedWriter::TakeLost() {
  absl::MutexLock lock(&state_->mutex);
  AwaitIdle();
  std::vector<Piece> lost = std::exchange(state_->lost, {});
  if (slot_ && filled_ > 0) {
    lost.push_back({worker_, slot_, offset_, filled_});
    offset_ += filled_;
    slot_ = {};
    filled_ = 0;
  }
  return lost;
}

absl::Status StagedWriter::WriteAgain(const Piece& piece) {
  const uint64_t next = std::exchange(offset_, piece.offset);
  absl::Status status = Write({reinterpret_cast<const char*>(piece.slot.data), piece.size});
  if (status.ok() && slot_ && filled_ > 0) Send();
  if (slot_) worker_->staging().Release(std::exchange(slot_, {}));
  filled_ = 0;
  num_accepted_ = 0;
  offset_ = next;
  return status;
}

StagedReader::StagedReader(std::shared_ptr<broker::Worker> worker, uint64_t arena, uint64_t offset,
                           uint64_t size, SteadyTime deadline)
    : worker_(std::move(worker)),
      arena_(arena),
      offset_(offset),
      remaining_(size),
      deadline_(deadline) {}

StagedReader::~StagedReader() = default;

bool StagedReader::Request(bool wait) {
  auto slot = wait ? worker_->staging().Acquire(deadline_) : worker_->staging().TryAcquire();
  if (!slot) return false;
  auto piece = std::make_shared<Piece>();
  piece->worker = worker_;
  piece->slot = slot;
  piece->size = std::min<uint64_t>(remaining_, slot.size);
  ahead_.push_back(piece);
  worker_->Copy(/*to_device=*/false, arena_, offset_, slot.offset, piece->size,
                [piece](absl::Status status) {
                  absl::MutexLock lock(&piece->mutex);
                  piece->done = true;
                  piece->status = std::move(status);
                });
  offset_ += piece->size;
  remaining_ -= piece->size;
  return true;
}

absl::StatusOr<ByteSource::Chunk> StagedReader::Next(uint64_t max_bytes) {
  while (remaining_ > 0 && ahead_.size() < kPiecesAhead) {
    if (!Request(/*wait=*/ahead_.empty())) break;
  }
  if (ahead_.empty()) {
    if (remaining_ == 0) return ByteSource::Chunk{};
    return NoSlot(*worker_);
  }
  std::shared_ptr<Piece> piece = ahead_.front();
  {
    absl::MutexLock lock(&piece->mutex);
    Await(piece->mutex, absl::Condition(&piece->done), SteadyTime::InfiniteFuture());
    if (!piece->status.ok()) return piece->status;
  }
  uint64_t count = std::min<uint64_t>(max_bytes, piece->size - consumed_);
  ByteSource::Chunk chunk;
  chunk.bytes = {reinterpret_cast<const char*>(piece->slot.data) + consumed_, count};
  consumed_ += count;
  if (consumed_ == piece->size) {
    ahead_.pop_front();
    consumed_ = 0;
  }
  chunk.lease = std::move(piece);
  return chunk;
}

}  // namespace stride::engine
