#include "server/engine/transfers/array_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "server/engine/service/region.h"
#include "server/store/spill_file.h"

namespace stride::engine {

ArrayWriter::~ArrayWriter() {
  shared_.reset();  // ends before num_copies lets the worker end
  if (queue_ == nullptr) return;
  TenantTransaction transaction(*core_, queue_->tenant);
  --queue_->num_copies;
}

absl::Status ArrayWriter::Open(DeviceQueue& queue, const store::Allocation& target, int64_t offset,
                               SteadyTime deadline, std::shared_ptr<Region> region) {
  region_ = std::move(region);
  {
    TenantTransaction transaction(*core_, queue.tenant);
    ++queue.num_copies;
    queue_ = &queue;
  }
  target_ = target;
  if (queue.description.host_memory()) {
    position_ = target.data() + offset;
    return absl::OkStatus();
  }
  if (queue.device == core_->disk_place()) {
    file_offset_ = target.offset + offset;
    return absl::OkStatus();
  }
  deadline_ = deadline;
  next_offset_ = target.offset + offset;
  return region_ != nullptr ? OpenShared() : OpenStaged(next_offset_);
}

absl::Status ArrayWriter::OpenShared() {
  auto worker = scheduler_->starter().BlockingWorker(*queue_, target_.arena, deadline_);
  if (!worker.ok()) return worker.status();
  if (absl::Status status = region_->MapIn(*worker); !status.ok()) return status;
  shared_ = std::make_unique<RegionCopies>(*worker, region_, /*to_device=*/true, target_.arena->id);
  return absl::OkStatus();
}

absl::Status ArrayWriter::WriteShared(const Region& region, int64_t offset, int64_t size) {
  if (shared_ == nullptr) return ByteSink::WriteShared(region, offset, size);
  for (int64_t done = 0; done < size; done += RegionCopies::kPieceBytes) {
    const auto count = static_cast<uint64_t>(std::min(size - done, RegionCopies::kPieceBytes));
    unsent_.push_back({next_offset_, static_cast<uint64_t>(offset + done), count});
    next_offset_ += count;
    if (absl::Status status = Send(/*wait=*/false); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ArrayWriter::Send(bool wait) {
  for (;;) {
    absl::Status status;
    while (status.ok() && (!unsent_.empty() || (wait && shared_->num_pieces() > 0))) {
      if (unsent_.empty() || shared_->num_pieces() == RegionCopies::kMaxPieces) {
        status = shared_->TakeFirst().status();
      } else {
        shared_->Send(unsent_.front());
        unsent_.pop_front();
      }
    }
    if (status.ok()) return status;
    // The bytes of copies that a worker's death interrupted are still in the region.
    std::vector<RegionCopies::Piece> lost = shared_->TakeLost();
    unsent_.insert(unsent_.begin(), lost.begin(), lost.end());
    while (!status.ok()) {
      if (!IsLostWorker(status) || ++num_tries_ >= kMaxTransferTries) return status;
      status = OpenShared();
    }
  }
}

absl::Status ArrayWriter::OpenStaged(uint64_t offset) {
  auto worker = scheduler_->starter().BlockingWorker(*queue_, target_.arena, deadline_);
  if (!worker.ok()) return worker.status();
  staged_ = std::make_unique<StagedWriter>(*worker, target_.arena->id, offset, deadline_);
  return absl::OkStatus();
}

// Continues with the next worker. Bytes that the dead one had not copied to the device are still in
// its staging memory.
absl::Status ArrayWriter::GoOn(absl::Status lost) {
  const uint64_t next = staged_->offset();
  std::vector<StagedWriter::Piece> pieces;
  while (IsLostWorker(lost) && ++num_tries_ < kMaxTransferTries) {
    for (StagedWriter::Piece& piece : staged_->TakeLost()) pieces.push_back(std::move(piece));
    lost = OpenStaged(next);
    while (lost.ok() && !pieces.empty()) {
      lost = staged_->WriteAgain(pieces.back());
      if (!lost.ok()) break;
      pieces.back().worker->staging().Release(pieces.back().slot);
      pieces.pop_back();
    }
  }
  for (const StagedWriter::Piece& piece : pieces) piece.worker->staging().Release(piece.slot);
  return lost;
}

absl::Status ArrayWriter::Write(std::string_view bytes) {
  if (position_ == nullptr && staged_ == nullptr) {
    uint64_t offset = std::exchange(file_offset_, file_offset_ + bytes.size());
    return store::WriteAt(target_.arena->fd.get(), offset,
                          reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  }
  if (staged_ == nullptr) {
    std::memcpy(position_, bytes.data(), bytes.size());
    position_ += bytes.size();
    return absl::OkStatus();
  }
  for (;;) {
    const uint64_t before = staged_->num_accepted();
    absl::Status status = staged_->Write(bytes);
    if (status.ok()) return status;
    bytes.remove_prefix(staged_->num_accepted() - before);
    if (absl::Status s = GoOn(std::move(status)); !s.ok()) return s;
  }
}

absl::Status ArrayWriter::Finish() {
  if (shared_ != nullptr) return Send(/*wait=*/true);
  while (staged_ != nullptr) {
    absl::Status status = staged_->Finish();
    if (status.ok()) return status;
    if (absl::Status s = GoOn(std::move(status)); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace stride::engine
