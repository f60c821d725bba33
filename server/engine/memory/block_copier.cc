#include "server/engine/memory/block_copier.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "server/base/environment.h"
#include "server/base/system_error.h"
#include "server/engine/memory/peer_reads.h"
#include "server/engine/memory/staged_copy.h"
#include "server/store/spill_file.h"

namespace stride::engine {
namespace {

constexpr uint64_t kFileStepBytes = uint64_t{1} << 20;
// Below this a thread costs more than it saves.
constexpr size_t kBytesOfCopyThread = size_t{8} << 20;
constexpr size_t kMaxCopyThreads = 8;

// Copies within host memory. One thread copies 8-12 GB/s, less than the memory's bandwidth.
void CopyMemory(std::byte* to, std::string_view from) {
  const size_t num_threads =
      std::min<size_t>({from.size() / kBytesOfCopyThread, kMaxCopyThreads,
                        std::max(1u, std::thread::hardware_concurrency() / 2)});
  std::vector<std::thread> others;
  size_t begin = 0;
  for (size_t left = num_threads; left > 1; --left) {
    const size_t count = (from.size() - begin) / left;
    auto other = StartThread([=] { std::memcpy(to + begin, from.data() + begin, count); });
    if (!other.ok()) break;  // the calling thread copies the rest
    others.push_back(*std::move(other));
    begin += count;
  }
  std::memcpy(to + begin, from.data() + begin, from.size() - begin);
  for (std::thread& other : others) other.join();
}

// Blocks until the worker has copied between two arenas that it has mapped.
absl::Status CopyOnDevice(broker::Worker& worker, const store::Allocation& source,
                          const store::Allocation& target, uint64_t size) {
  absl::Notification ended;
  absl::Status result;
  worker.CopyFromPeer(target.arena->id, target.offset, source.arena->id, source.offset, size,
                      [&](absl::Status status) {
                        result = std::move(status);
                        ended.Notify();
                      });
  stride::Await(ended, SteadyTime::InfiniteFuture());
  return result;
}

}  // namespace

// Writes the bytes of a block in order, wherever the block is.
class BlockCopier::Sink {
 public:
  Sink(Core* core, const store::Allocation& target) : core_(core), target_(target) {}

  absl::Status Open(WorkerSource* workers, DeviceQueue& to) {
    if (target_.mapped() || to.device == core_->disk_place()) return absl::OkStatus();
    in_use_.emplace(core_, &to);
    auto worker = workers->BlockingWorker(to, target_.arena);
    if (!worker.ok()) return worker.status();
    writer_.emplace(*worker, target_.arena->id, target_.offset, SteadyTime::InfiniteFuture());
    return absl::OkStatus();
  }
  absl::Status Put(std::string_view piece) {
    if (writer_.has_value()) return writer_->Write(piece);
    const uint64_t offset = std::exchange(written_, written_ + piece.size());
    if (!target_.mapped()) {
      return store::WriteAt(target_.arena->fd.get(), target_.offset + offset,
                            reinterpret_cast<const std::byte*>(piece.data()), piece.size());
    }
    CopyMemory(target_.data() + offset, piece);
    return absl::OkStatus();
  }
  // Also after an error: no copy in flight may arrive when the memory is another buffer's.
  absl::Status Close(absl::Status status) {
    if (!writer_.has_value()) return status;
    absl::Status finished = writer_->Finish();
    return status.ok() ? finished : status;
  }

 private:
  Core* const core_;
  const store::Allocation& target_;
  std::optional<WorkerInUse> in_use_;
  std::optional<StagedWriter> writer_;  // only where the target is on a device
  uint64_t written_ = 0;
};

absl::Status BlockCopier::CopyBytes(std::string_view bytes, DeviceQueue& to,
                                    const store::Allocation& target) {
  Sink sink(core_, target);
  if (absl::Status status = sink.Open(workers_, to); !status.ok()) return status;
  return sink.Close(sink.Put(bytes));
}

absl::Status BlockCopier::Copy(DeviceQueue& from, const store::Allocation& source, DeviceQueue& to,
                               const store::Allocation& target, uint64_t size) {
  if (source.mapped())
    return CopyBytes({reinterpret_cast<const char*>(source.data()), size}, to, target);
  std::optional<WorkerInUse> in_use;
  std::optional<StagedReader> reader;
  if (from.device != core_->disk_place()) {
    in_use.emplace(core_, &from);
    auto worker = workers_->BlockingWorker(from, source.arena);
    if (!worker.ok()) return worker.status();
    reader.emplace(*worker, source.arena->id, source.offset, size, SteadyTime::InfiniteFuture());
  }
  Sink sink(core_, target);
  absl::Status status = sink.Open(workers_, to);
  if (!status.ok()) return status;
  if (!reader.has_value()) return sink.Close(CopyFile(source, size, &sink));
  while (status.ok()) {
    auto chunk = reader->Next(UINT64_MAX);
    status = chunk.status();
    if (!chunk.ok() || chunk->bytes.empty()) break;
    status = sink.Put(chunk->bytes);
  }
  return sink.Close(std::move(status));
}

absl::Status BlockCopier::CopyFile(const store::Allocation& source, uint64_t size, Sink* sink) {
  std::vector<std::byte> piece(std::min(size, kFileStepBytes));
  absl::Status status;
  for (uint64_t done = 0; status.ok() && done < size; done += piece.size()) {
    const size_t count = std::min<uint64_t>(size - done, piece.size());
    status = store::ReadAt(source.arena->fd.get(), source.offset + done, piece.data(), count);
    if (status.ok()) status = sink->Put({reinterpret_cast<const char*>(piece.data()), count});
  }
  return status;
}

absl::Status BlockCopier::CopyFromPeer(DeviceQueue& from, const store::Allocation& source,
                                       DeviceQueue& to, const store::Allocation& target,
                                       uint64_t size) {
  auto worker = workers_->BlockingWorker(to, target.arena);
  if (!worker.ok()) return worker.status();
  {
    GlobalTransaction transaction(*core_);
    if (to.worker != *worker) return LostWorker();
    if (absl::Status mapped = MapArena(to, source.arena, /*peer=*/true); !mapped.ok())
      return mapped;
    ++to.num_copies;
    ++from.num_copies;
  }
  absl::Status copied = CopyOnDevice(**worker, source, target, size);
  GlobalTransaction transaction(*core_);
  --to.num_copies;
  --from.num_copies;
  if (copied.ok()) PeerReads::NoteCopy(transaction, to, *worker, *source.arena);
  return copied;
}

absl::Status BlockCopier::CopyWithin(DeviceQueue& queue, const store::Allocation& source,
                                     const store::Allocation& target, uint64_t size,
                                     SteadyTime deadline) {
  WorkerInUse in_use(core_, &queue);
  auto worker = workers_->BlockingWorker(queue, source.arena, deadline);
  if (!worker.ok()) return worker.status();
  auto same = workers_->BlockingWorker(queue, target.arena, deadline);
  if (!same.ok()) return same.status();
  if (*same != *worker) return LostWorker();
  return CopyOnDevice(**worker, source, target, size);
}

}  // namespace stride::engine
