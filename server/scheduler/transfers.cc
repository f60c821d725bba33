#include "server/scheduler/transfers.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/steady_time.h"
#include "server/scheduler/describe.h"
#include "server/scheduler/lent_for_reading.h"
#include "server/scheduler/recorder.h"
#include "server/store/spill_file.h"

namespace stride::scheduler {
namespace {

constexpr int64_t kFilePieceBytes = int64_t{1} << 20;

}  // namespace

ArrayWriter::~ArrayWriter() {
  shared_.reset();  // ends before num_copies lets the worker end
  if (lane_ == nullptr) return;
  TenantTransaction transaction(*core_, lane_->tenant);
  --lane_->num_copies;
}

absl::Status ArrayWriter::Open(Lane& lane, const store::Allocation& target, int64_t offset,
                               SteadyTime deadline) {
  {
    TenantTransaction transaction(*core_, lane.tenant);
    ++lane.num_copies;
    lane_ = &lane;
  }
  target_ = target;
  if (lane.description.host_memory()) {
    position_ = target.data() + offset;
    return absl::OkStatus();
  }
  if (lane.device == core_->disk_place()) {
    file_offset_ = target.offset + offset;
    return absl::OkStatus();
  }
  deadline_ = deadline;
  next_offset_ = target.offset + offset;
  return region_ != nullptr ? OpenShared() : OpenStaged(target.offset + offset, deadline);
}

absl::Status ArrayWriter::OpenShared() {
  auto worker = scheduler_->BlockingWorker(*lane_, target_.arena, deadline_);
  if (!worker.ok()) return worker.status();
  if (absl::Status status = region_->MapIn(*worker); !status.ok()) return status;
  shared_ = std::make_unique<RegionCopies>(*worker, region_, /*to_device=*/true, target_.arena->id);
  return absl::OkStatus();
}

absl::Status ArrayWriter::WriteShared(int64_t offset, int64_t size) {
  const std::byte* bytes = region_->data() + offset;
  if (position_ != nullptr) {
    std::memcpy(position_, bytes, static_cast<size_t>(size));
    position_ += size;
    return absl::OkStatus();
  }
  if (shared_ == nullptr) {
    const uint64_t to = std::exchange(file_offset_, file_offset_ + static_cast<uint64_t>(size));
    return store::WriteAt(target_.arena->fd.get(), to, bytes, static_cast<size_t>(size));
  }
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

absl::Status ArrayWriter::OpenStaged(uint64_t offset, SteadyTime deadline) {
  auto worker = scheduler_->BlockingWorker(*lane_, target_.arena, deadline);
  if (!worker.ok()) return worker.status();
  deadline_ = deadline;
  staged_ = std::make_unique<StagedWriter>(*worker, target_.arena->id, offset, deadline);
  return absl::OkStatus();
}

// Continues with the next worker. Bytes that the dead one had not copied to the device are still in
// its staging memory.
absl::Status ArrayWriter::GoOn(absl::Status lost) {
  const uint64_t next = staged_->offset();
  std::vector<StagedWriter::Piece> pieces;
  while (IsLostWorker(lost) && ++num_tries_ < kMaxTransferTries) {
    for (StagedWriter::Piece& piece : staged_->TakeLost()) pieces.push_back(std::move(piece));
    lost = OpenStaged(next, deadline_);
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

absl::Status RangedUpload::Write(std::string_view bytes) {
  if (static_cast<int64_t>(bytes.size()) > remaining()) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_MISMATCH, "data",
        absl::StrCat("more bytes than the range declares. Declared: ", end_ - begin_));
  }
  if (absl::Status status = writer_.Write(bytes); !status.ok()) return status;
  position_ += bytes.size();
  return absl::OkStatus();
}

absl::Status RangedUpload::WriteShared(int64_t offset, int64_t size) {
  const Region* region = writer_.region();
  if (region == nullptr || !region->Covers(offset, size)) {
    return InvalidField(
        v1::ERROR_REASON_INVALID_FIELD, "chunk",
        absl::StrCat("outside the region. Region: ", region == nullptr ? 0 : region->size(),
                     ", offset: ", offset, ", size: ", size));
  }
  if (size > remaining()) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_MISMATCH, "chunk",
        absl::StrCat("more bytes than the range declares. Declared: ", end_ - begin_));
  }
  if (absl::Status status = writer_.WriteShared(offset, size); !status.ok()) return status;
  position_ += size;
  return absl::OkStatus();
}

void RangedUpload::Hold() {
  if (!std::exchange(holding_, true)) ++array_->buffer->num_holders;
}

void RangedUpload::LetGo(TenantTransaction& transaction) {
  if (std::exchange(holding_, false)) scheduler_->LetGo(transaction, *array_->buffer);
}

absl::StatusOr<v1::Array> RangedUpload::Finish() {
  if (remaining() > 0) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_MISMATCH, writer_.region() != nullptr ? "chunk" : "data",
        absl::StrCat("fewer bytes than the range declares. Declared: ", end_ - begin_,
                     ", sent: ", position_ - begin_));
  }
  if (absl::Status status = writer_.Finish(); !status.ok()) return status;
  TenantTransaction transaction(*core_, array_->buffer->tenant);
  // The array was deleted during the upload; views of it carry the error.
  if (!array_->buffer->error.ok()) return array_->buffer->error;
  complete_ = true;
  Completed(transaction);
  return Describe(*core_, *array_);
}

absl::Status ReceivingUpload::Open(SteadyTime deadline) {
  // One call allocates the memory, and concurrent ones then find it.
  absl::MutexLock allocation_lock(&receiving_->allocation);
  Lane* lane;
  store::Allocation target;
  bool have = false;
  {
    TenantTransaction transaction(*core_, array_->buffer->tenant);
    if (!array_->buffer->error.ok()) return array_->buffer->error;
    Hold();
    lane = &scheduler_->LaneFor(transaction, array_->buffer->tenant, receiving_->device);
    auto it = array_->buffer->replicas.find(receiving_->device);
    have = it != array_->buffer->replicas.end();
    if (have) target = it->second;
  }
  if (!have) {
    auto allocated = scheduler_->BlockingAllocate(*lane, array_->buffer->size);
    if (absl::IsResourceExhausted(allocated.status()) && lane->device == core_->memory_place()) {
      // An array larger than the device may lie in a file too.
      {
        TenantTransaction transaction(*core_, array_->buffer->tenant);
        lane = &scheduler_->LaneFor(transaction, array_->buffer->tenant, core_->disk_place());
      }
      auto in_file = scheduler_->BlockingAllocate(*lane, array_->buffer->size);
      if (in_file.ok()) allocated = std::move(in_file);
    }
    if (!allocated.ok()) return allocated.status();
    target = *allocated;
    TenantTransaction transaction(*core_, array_->buffer->tenant);
    if (receiving_->device != lane->device) {
      receiving_->device = lane->device;
      core_->recorder->Changed(transaction, array_);
    }
    array_->buffer->AddReplica(receiving_->device, target);
  }
  return writer_.Open(*lane, target, array_->info->offset + begin_, deadline);
}

void ReceivingUpload::Completed(TenantTransaction& transaction) {
  receiving_->AddRange(begin_, end_);
  core_->recorder->Changed(transaction, array_);
  scheduler_->account(receiving_->device).upload_bytes += end_ - begin_;
  if (!receiving_->ranges.Covers(array_->info->size_bytes())) return;
  array_->receiving.reset();
  array_->buffer->SetIncoming(false);
  scheduler_->Finish(transaction, std::static_pointer_cast<Task>(receiving_->access),
                     absl::OkStatus());
}

ReceivingUpload::~ReceivingUpload() {
  // The bytes written so far stay, so that the client can continue after them.
  bool arrived = !complete_ && writer_.Finish().ok();
  TenantTransaction transaction(*core_, array_->buffer->tenant);
  LetGo(transaction);
  if (arrived && array_->receiving != nullptr) {
    receiving_->AddRange(begin_, position_);
    core_->recorder->Changed(transaction, array_);
  }
  --receiving_->num_calls;
  receiving_->lease_end = core_->Now() + core_->options.upload_lease;
}

absl::Status OverwriteUpload::Open(SteadyTime deadline) {
  Lane* lane = nullptr;
  store::Allocation target;
  {
    TenantTransaction transaction(*core_, array_->buffer->tenant);
    if (!array_->buffer->error.ok()) return array_->buffer->error;
    if (array_->buffer->num_loans > 0) return LentForReading();
    auto& replicas = array_->buffer->replicas;
    if (replicas.empty())
      return MakeError(absl::StatusCode::kDataLoss, v1::ERROR_REASON_DATA_LOST,
                       "the array's only copy is gone");
    Hold();
    int device = replicas.begin()->first;
    target = replicas.begin()->second;
    array_->buffer->KeepOnly(device);
    ++array_->buffer->num_writes;
    lane = &scheduler_->LaneFor(transaction, array_->buffer->tenant, device);
  }
  return writer_.Open(*lane, target, array_->info->offset + begin_, deadline);
}

OverwriteUpload::~OverwriteUpload() {
  writer_.Finish().IgnoreError();
  TenantTransaction transaction(*core_, array_->buffer->tenant);
  LetGo(transaction);
  scheduler_->Finish(transaction, task_, absl::OkStatus());
}

ArrayDownload::~ArrayDownload() {
  staged_.reset();
  shared_.reset();
  if (lane_ == nullptr) return;
  TenantTransaction transaction(*core_, lane_->tenant);
  --lane_->num_copies;
}

absl::Status ArrayDownload::Open() {
  const session::Array& array = access_->array();
  Lane* lane = nullptr;
  {
    TenantTransaction transaction(*core_, array.buffer->tenant);
    inline_bytes_ = array.buffer->inline_bytes;
    for (auto& [device, replica] : array.buffer->replicas) {
      if (lane != nullptr && !core_->Place(device).host_memory()) continue;
      lane = &scheduler_->LaneFor(transaction, array.buffer->tenant, device);
      source_ = replica;
    }
    if (lane == nullptr && inline_bytes_ == nullptr) {
      return MakeError(absl::StatusCode::kDataLoss, v1::ERROR_REASON_DATA_LOST,
                       "the array's only copy is gone");
    }
    if (lane != nullptr) {
      scheduler_->account(lane->device).download_bytes += end_ - position_;
      if (lane_ == nullptr) {
        ++lane->num_copies;
        lane_ = lane;
      }
    }
  }
  from_file_ = lane != nullptr && lane->device == core_->disk_place();
  if (lane == nullptr || source_.mapped() || from_file_) return absl::OkStatus();
  auto worker = scheduler_->BlockingWorker(*lane, source_.arena, deadline_);
  if (!worker.ok()) return worker.status();
  if (region_ != nullptr) {
    num_requested_ = 0;
    if (absl::Status status = region_->MapIn(*worker); !status.ok()) return status;
    shared_ =
        std::make_unique<RegionCopies>(*worker, region_, /*to_device=*/false, source_.arena->id);
    return absl::OkStatus();
  }
  staged_ = std::make_unique<StagedReader>(*worker, source_.arena->id,
                                           source_.offset + array.info->offset + position_,
                                           end_ - position_, deadline_);
  return absl::OkStatus();
}

absl::StatusOr<Download::Chunk> ArrayDownload::Next(int64_t max_bytes) {
  if (position_ == end_) return Chunk{};
  for (int i = 0; i < kMaxTransferTries; ++i) {
    if (!std::exchange(opened_, true)) {
      if (absl::Status status = Open(); !status.ok()) return status;
    }
    if (staged_ != nullptr) {
      auto chunk = staged_->Next(max_bytes);
      if (chunk.ok()) {
        position_ += chunk->bytes.size();
        return chunk;
      }
      if (!MayGoOn(chunk.status()) || i + 1 == kMaxTransferTries) return chunk.status();
      staged_.reset();
      opened_ = false;
      continue;
    }
    if (from_file_) return NextOfFile(max_bytes);
    Chunk chunk;
    const char* base = source_.arena != nullptr ? reinterpret_cast<const char*>(source_.data())
                                                : inline_bytes_->data();
    int64_t count = std::min(max_bytes, end_ - position_);
    chunk.bytes = {base + access_->array().info->offset + position_, static_cast<size_t>(count)};
    chunk.lease = access_;
    position_ += count;
    return chunk;
  }
  return absl::InternalError("unreachable");
}

Download::SharedChunk ArrayDownload::Shared(int64_t size) {
  const SharedChunk chunk{region_position_, size};
  region_position_ += size;
  position_ += size;
  return chunk;
}

absl::StatusOr<Download::SharedChunk> ArrayDownload::NextShared(int64_t max_bytes) {
  if (region_ == nullptr) return absl::InternalError("a download without a region");
  if (position_ == end_) return SharedChunk{region_position_, 0};
  absl::Status status;
  for (int i = 0; i < kMaxTransferTries; ++i) {
    if (!std::exchange(opened_, true)) status = Open();
    if (status.ok()) {
      if (shared_ == nullptr) return CopyShared(max_bytes);
      auto chunk = AwaitShared(max_bytes);
      if (chunk.ok()) return chunk;
      status = chunk.status();
    }
    if (!MayGoOn(status)) return status;
    // The next worker copies again from the first byte that was not returned.
    shared_.reset();
    opened_ = false;
    if (i + 1 < kMaxTransferTries) status = absl::OkStatus();
  }
  return status;
}

absl::StatusOr<Download::SharedChunk> ArrayDownload::CopyShared(int64_t max_bytes) {
  const int64_t count = std::min(max_bytes, end_ - position_);
  std::byte* to = region_->data() + region_position_;
  const auto offset = static_cast<uint64_t>(access_->array().info->offset + position_);
  if (from_file_) {
    absl::Status status = store::ReadAt(source_.arena->fd.get(), source_.offset + offset, to,
                                        static_cast<size_t>(count));
    if (!status.ok()) return status;
  } else {
    const char* base = source_.arena != nullptr ? reinterpret_cast<const char*>(source_.data())
                                                : inline_bytes_->data();
    std::memcpy(to, base + offset, static_cast<size_t>(count));
  }
  return Shared(count);
}

absl::StatusOr<Download::SharedChunk> ArrayDownload::AwaitShared(int64_t max_bytes) {
  while (shared_->num_pieces() < RegionCopies::kMaxPieces && position_ + num_requested_ < end_) {
    const int64_t count = std::min(max_bytes, end_ - position_ - num_requested_);
    shared_->Send(
        {source_.offset +
             static_cast<uint64_t>(access_->array().info->offset + position_ + num_requested_),
         static_cast<uint64_t>(region_position_ + num_requested_), static_cast<uint64_t>(count)});
    num_requested_ += count;
  }
  auto piece = shared_->TakeFirst();
  if (!piece.ok()) return piece.status();
  num_requested_ -= static_cast<int64_t>(piece->size);
  return Shared(static_cast<int64_t>(piece->size));
}

absl::StatusOr<Download::Chunk> ArrayDownload::NextOfFile(int64_t max_bytes) {
  auto count = static_cast<size_t>(std::min({max_bytes, end_ - position_, kFilePieceBytes}));
  auto piece = std::make_shared<std::vector<std::byte>>(count);
  uint64_t offset = source_.offset + access_->array().info->offset + position_;
  absl::Status status = store::ReadAt(source_.arena->fd.get(), offset, piece->data(), count);
  if (!status.ok()) return status;
  position_ += static_cast<int64_t>(count);
  Chunk chunk;
  chunk.bytes = {reinterpret_cast<const char*>(piece->data()), count};
  chunk.lease = std::move(piece);
  return chunk;
}

}  // namespace stride::scheduler
