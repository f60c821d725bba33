#include "server/engine/transfers/buffer_source.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "server/base/error.h"
#include "server/engine/service/region.h"
#include "server/store/spill_file.h"

namespace stride::engine {
namespace {

constexpr int64_t kFilePieceBytes = int64_t{1} << 20;

}  // namespace

BufferSource::~BufferSource() {
  Close();
  if (queue_ == nullptr) return;
  TenantTransaction transaction(*core_, queue_->tenant);
  --queue_->num_copies;
}

absl::Status BufferSource::Await(SteadyTime deadline) {
  Close();
  position_ = begin_;
  deadline_ = deadline;
  return access_->Await(deadline);
}

void BufferSource::Close() {
  staged_.reset();
  shared_.reset();
  opened_ = false;
}

absl::Status BufferSource::Open(const std::shared_ptr<Region>& region) {
  const store::Buffer& buffer = *access_->array().buffer;
  DeviceQueue* queue = nullptr;
  {
    TenantTransaction transaction(*core_, buffer.tenant);
    inline_bytes_ = buffer.inline_bytes;
    for (auto& [device, replica] : buffer.replicas) {
      if (queue != nullptr && !core_->MemorySpace(device).host_memory()) continue;
      queue = &scheduler_->queues().Get(transaction, buffer.tenant, device);
      source_ = replica;
    }
    if (queue == nullptr && inline_bytes_ == nullptr) {
      return MakeError(absl::StatusCode::kDataLoss, v1::ERROR_REASON_DATA_LOST,
                       "the array's only copy is gone");
    }
    if (queue != nullptr) {
      core_->device_accounts[queue->device].download_bytes += end_ - position_;
      if (queue_ == nullptr) {
        ++queue->num_copies;
        queue_ = queue;
      }
    }
  }
  from_file_ = queue != nullptr && queue->device == core_->disk_place();
  if (queue == nullptr || source_.mapped() || from_file_) return absl::OkStatus();
  return BeginCopies(*queue, region);
}

absl::Status BufferSource::BeginCopies(DeviceQueue& queue, const std::shared_ptr<Region>& region) {
  auto worker = scheduler_->starter().BlockingWorker(queue, source_.arena, deadline_);
  if (!worker.ok()) return worker.status();
  if (region == nullptr) {
    staged_ = std::make_unique<StagedReader>(*worker, source_.arena->id, Offset(), end_ - position_,
                                             deadline_);
    return absl::OkStatus();
  }
  num_requested_ = 0;
  if (absl::Status status = region->MapIn(*worker); !status.ok()) return status;
  shared_ = std::make_unique<RegionCopies>(*worker, region, /*to_device=*/false, source_.arena->id);
  return absl::OkStatus();
}

uint64_t BufferSource::Offset() const {
  const uint64_t block = source_.arena != nullptr ? source_.offset : 0;
  return block + static_cast<uint64_t>(access_->array().info->offset + position_);
}

const char* BufferSource::bytes() const {
  const char* base = source_.arena != nullptr ? reinterpret_cast<const char*>(source_.data())
                                              : inline_bytes_->data();
  return base + access_->array().info->offset + position_;
}

template <typename Copy>
absl::Status BufferSource::WithWorker(const std::shared_ptr<Region>& region, Copy copy) {
  return CopyWithSuccessors([&] {
    absl::Status status = std::exchange(opened_, true) ? absl::OkStatus() : Open(region);
    if (status.ok()) status = copy();
    if (!status.ok()) Close();  // the next worker continues at `position_`
    return status;
  });
}

absl::StatusOr<ByteSource::Chunk> BufferSource::Next(int64_t max_bytes) {
  Chunk chunk;
  absl::Status status = WithWorker(nullptr, [&] {
    if (from_file_) return NextFromFile(max_bytes, &chunk);
    if (staged_ != nullptr) {
      auto next = staged_->Next(max_bytes);
      if (next.ok()) chunk = *std::move(next);
      return next.status();
    }
    chunk = {{bytes(), static_cast<size_t>(std::min(max_bytes, end_ - position_))}, access_};
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  position_ += static_cast<int64_t>(chunk.bytes.size());
  return chunk;
}

absl::Status BufferSource::NextFromFile(int64_t max_bytes, Chunk* chunk) {
  auto count = static_cast<size_t>(std::min({max_bytes, end_ - position_, kFilePieceBytes}));
  auto piece = std::make_shared<std::vector<std::byte>>(count);
  *chunk = {{reinterpret_cast<const char*>(piece->data()), count}, piece};
  return store::ReadAt(source_.arena->fd.get(), Offset(), piece->data(), count);
}

absl::StatusOr<int64_t> BufferSource::NextShared(const std::shared_ptr<Region>& region,
                                                 int64_t offset, int64_t max_bytes) {
  int64_t size = std::min(max_bytes, end_ - position_);
  absl::Status status = WithWorker(region, [&] {
    if (shared_ != nullptr) return AwaitCopy(offset, max_bytes, &size);
    std::byte* to = region->data() + offset;
    if (from_file_) return store::ReadAt(source_.arena->fd.get(), Offset(), to, size);
    std::memcpy(to, bytes(), static_cast<size_t>(size));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  position_ += size;
  return size;
}

absl::Status BufferSource::AwaitCopy(int64_t offset, int64_t max_bytes, int64_t* size) {
  while (shared_->num_pieces() < RegionCopies::kMaxPieces && position_ + num_requested_ < end_) {
    const int64_t count = std::min(max_bytes, end_ - position_ - num_requested_);
    shared_->Send({Offset() + static_cast<uint64_t>(num_requested_),
                   static_cast<uint64_t>(offset + num_requested_), static_cast<uint64_t>(count)});
    num_requested_ += count;
  }
  auto piece = shared_->TakeFirst();
  if (!piece.ok()) return piece.status();
  *size = static_cast<int64_t>(piece->size);
  num_requested_ -= *size;
  return absl::OkStatus();
}

}  // namespace stride::engine
