// Scheduler: copies buffers to the device that needs them.
#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/base/error.h"
#include "server/base/surroundings.h"
#include "server/base/system_error.h"
#include "server/scheduler/links.h"
#include "server/scheduler/out_of_memory.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/staged_copy.h"
#include "server/store/spill_file.h"

namespace stride::scheduler {
namespace {

// Inline inputs up to this size are copied at once, in the transaction: handing them to another
// thread would cost more.
constexpr int64_t kCopyAtOnceBytes = 64 << 10;
constexpr uint64_t kFilePieceBytes = uint64_t{1} << 20;
// Below this a thread costs more than it saves.
constexpr size_t kBytesOfCopyThread = size_t{8} << 20;
constexpr size_t kMaxCopyThreads = 8;
// Longest time from a failed send to a dead worker until the broker reports the death.
constexpr absl::Duration kDeathNotice = absl::Seconds(5);

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

absl::Status LostWorker() {
  return TryLater(absl::StatusCode::kUnavailable, v1::ERROR_REASON_WORKER_LOST,
                  "the device process was lost; try again", absl::Milliseconds(200));
}

}  // namespace

void Scheduler::StartMove(GlobalTransaction& transaction, const std::shared_ptr<Task>& task,
                          const std::shared_ptr<store::Buffer>& buffer,
                          const store::Allocation& target) {
  Lane& lane = *task->lane;
  if (task->move_start == SteadyTime()) task->move_start = core_->Now();
  bool returns = !buffer->replicas.empty() && !core_->IsDevice(buffer->replicas.begin()->first);
  if (returns) spilled_.returned_bytes += buffer->size;
  auto move = [this, lane = &lane, buffer, target, num_writes = buffer->num_writes] {
    absl::Status status = CopyWithSuccessors([&] { return RunMove(*lane, target, buffer); });
    GlobalTransaction transaction(*core_);
    MoveDone(transaction, lane->device, buffer, target, num_writes, std::move(status));
  };
  if (!StartPeerMove(transaction, lane, buffer, target, move)) core_->executor.Run(std::move(move));
}

// The buffer's bytes, if they are few and the daemon maps both them and the target; else null.
const void* Scheduler::BytesAtHand(const store::Buffer& buffer, const store::Allocation& to) {
  if (!to.mapped() || buffer.size > kCopyAtOnceBytes) return nullptr;
  if (buffer.inline_bytes != nullptr) return buffer.inline_bytes->data();
  for (const auto& [place, replica] : buffer.replicas) {
    if (replica.mapped()) return replica.data();
  }
  return nullptr;
}

// Copies from a device whose memory this one reads: one command, for which no thread waits.
bool Scheduler::StartPeerMove(TenantTransaction& transaction, Lane& to,
                              const std::shared_ptr<store::Buffer>& buffer,
                              const store::Allocation& target, std::function<void()> otherwise) {
  Lane* from = nullptr;
  store::Allocation source;
  for (const auto& [place, replica] : buffer->replicas) {
    if (from != nullptr || replica.mapped() || !IsPeer(place, to.device)) continue;
    from = &LaneFor(transaction, buffer->tenant, place);
    source = replica;
  }
  std::shared_ptr<broker::Worker> worker = to.worker;
  if (from == nullptr || buffer->inline_bytes != nullptr || worker == nullptr || !worker->alive())
    return false;
  if (!MapFor(to, target.arena, /*peer=*/false).ok()) return false;
  if (!MapFor(to, source.arena, /*peer=*/true).ok()) return false;
  ++to.num_copies;
  ++from->num_copies;
  auto done = [this, to = &to, from, buffer, source, target, num_writes = buffer->num_writes,
               asked = std::weak_ptr(worker),
               otherwise = std::move(otherwise)](absl::Status status) {
    GlobalTransaction transaction(*core_);
    --to->num_copies;
    --from->num_copies;
    if (status.ok()) {
      NotePeerCopy(*to, asked, *source.arena);
      MoveDone(transaction, to->device, buffer, target, num_writes, std::move(status));
    } else {
      core_->executor.Run(otherwise);
    }
  };
  // After the transaction, since a worker that has ended may answer at once.
  transaction.Defer([worker = std::move(worker), source, target,
                     size = static_cast<uint64_t>(buffer->size), done = std::move(done)] {
    worker->CopyFromPeer(target.arena->id, target.offset, source.arena->id, source.offset, size,
                         done);
  });
  return true;
}

// Maps an arena into the queue's worker: of its own device, or of a peer that it reads.
absl::Status Scheduler::MapFor(Lane& lane, const std::shared_ptr<store::Arena>& arena, bool peer) {
  if (!lane.mapped.emplace(arena->id, false).second) return absl::OkStatus();
  const int fd = arena->fd.get();
  const bool in_place = arena->map.data() != nullptr && !lane.description.host_memory();
  absl::Status mapped = peer       ? lane.worker->MapPeerArena(arena->id, arena->size, fd)
                        : in_place ? lane.worker->MapHostArena(arena->id, arena->size, fd)
                                   : lane.worker->MapArena(arena->id, arena->size, fd);
  if (!mapped.ok()) lane.mapped.erase(arena->id);
  return mapped;
}

absl::Status Scheduler::RunMove(Lane& to, const store::Allocation& target,
                                const std::shared_ptr<store::Buffer>& buffer) {
  // The tasks that wait for this move read the buffer, so no writer changes its content or
  // replicas. Once all of them are cancelled a writer can, and the move is stale.
  std::shared_ptr<const std::string> inline_bytes;
  store::Allocation source;
  Lane* from = nullptr;
  {
    GlobalTransaction transaction(*core_);
    inline_bytes = buffer->inline_bytes;
    for (auto& [place, replica] : buffer->replicas) {
      const bool peer = from != nullptr && IsPeer(from->device, to.device);
      const bool better = from == nullptr || IsPeer(place, to.device) ||
                          (!peer && core_->Place(place).host_memory());
      if (!better) continue;
      source = replica;
      from = &LaneFor(transaction, buffer->tenant, place);
    }
  }
  auto size = static_cast<uint64_t>(buffer->size);
  if (inline_bytes != nullptr) return CopyBlock(nullptr, {}, *inline_bytes, to, target, size);
  if (from == nullptr) {
    return MakeError(absl::StatusCode::kDataLoss, v1::ERROR_REASON_DATA_LOST,
                     "the array's only copy is gone");
  }
  bool peer = false;
  {
    GlobalTransaction transaction(*core_);
    peer = IsPeer(from->device, to.device);
  }
  if (peer) {
    absl::Status copied = CopyFromPeer(*from, source, to, target, size);
    if (copied.ok() || MayGoOn(copied)) return copied;
    GlobalTransaction transaction(*core_);
    if (broken_links_.insert({from->device, to.device}).second) {
      core_->options.log(absl::StrCat("copies from devices/", from->description.id(),
                                      " to devices/", to.description.id(),
                                      " go through the host from now on, since one between the "
                                      "devices failed: ",
                                      copied.message()));
    }
  }
  return CopyBlock(from, source, {}, to, target, size);
}

bool Scheduler::IsPeer(int from, int to) const {
  if (core_->broker->links().empty() || !core_->IsDevice(from) || !core_->IsDevice(to))
    return false;
  const wire::Link* link =
      FindLink(core_->broker->links(), core_->Place(from).id(), core_->Place(to).id());
  return link != nullptr && link->peer() && broken_links_.count({from, to}) == 0;
}

// The worker of the target reads the source's arena.
absl::Status Scheduler::CopyFromPeer(Lane& from, const store::Allocation& source, Lane& to,
                                     const store::Allocation& target, uint64_t size) {
  auto worker = BlockingWorker(to, target.arena);
  if (!worker.ok()) return worker.status();
  absl::Notification ended;
  absl::Status result;
  {
    GlobalTransaction transaction(*core_);
    if (to.worker != *worker) return LostWorker();
    if (absl::Status mapped = MapFor(to, source.arena, /*peer=*/true); !mapped.ok()) return mapped;
    ++to.num_copies;
    ++from.num_copies;
  }
  (*worker)->CopyFromPeer(target.arena->id, target.offset, source.arena->id, source.offset, size,
                          [&](absl::Status status) {
                            result = std::move(status);
                            ended.Notify();
                          });
  stride::Await(ended, SteadyTime::InfiniteFuture());
  GlobalTransaction transaction(*core_);
  --to.num_copies;
  --from.num_copies;
  if (result.ok()) NotePeerCopy(to, *worker, *source.arena);
  return result;
}

void Scheduler::NotePeerCopy(Lane& lane, const std::weak_ptr<broker::Worker>& worker,
                             const store::Arena& arena) {
  if (lane.worker == nullptr || lane.worker != worker.lock()) return;
  auto mapped = lane.mapped.find(arena.id);
  if (mapped != lane.mapped.end()) mapped->second = true;
}

absl::Status Scheduler::CopyBlock(Lane* from, const store::Allocation& source,
                                  std::string_view bytes, Lane& to, const store::Allocation& target,
                                  uint64_t size) {
  bool from_file = from != nullptr && from->device == core_->disk_place();
  bool to_file = to.device == core_->disk_place();
  std::optional<WorkerInUse> from_in_use, to_in_use;
  std::unique_ptr<StagedReader> reader;
  if (from != nullptr && source.mapped()) {
    bytes = {reinterpret_cast<const char*>(source.data()), static_cast<size_t>(size)};
  } else if (from != nullptr && !from_file) {
    from_in_use.emplace(core_, from);
    auto worker = BlockingWorker(*from, source.arena);
    if (!worker.ok()) return worker.status();
    reader = std::make_unique<StagedReader>(*worker, source.arena->id, source.offset, size,
                                            SteadyTime::InfiniteFuture());
  }

  std::unique_ptr<StagedWriter> writer;
  std::byte* position = nullptr;
  uint64_t written = 0;
  if (target.mapped()) {
    position = target.data();
  } else if (!to_file) {
    to_in_use.emplace(core_, &to);
    auto worker = BlockingWorker(to, target.arena);
    if (!worker.ok()) return worker.status();
    writer = std::make_unique<StagedWriter>(*worker, target.arena->id, target.offset,
                                            SteadyTime::InfiniteFuture());
  }
  auto put = [&](std::string_view piece) -> absl::Status {
    if (writer != nullptr) return writer->Write(piece);
    if (to_file) {
      uint64_t offset = target.offset + std::exchange(written, written + piece.size());
      return store::WriteAt(target.arena->fd.get(), offset,
                            reinterpret_cast<const std::byte*>(piece.data()), piece.size());
    }
    CopyMemory(position, piece);
    position += piece.size();
    return absl::OkStatus();
  };
  absl::Status status;
  if (from_file) {
    std::vector<std::byte> piece(std::min(size, kFilePieceBytes));
    for (uint64_t done = 0; status.ok() && done < size; done += piece.size()) {
      size_t count = std::min<uint64_t>(size - done, piece.size());
      status = store::ReadAt(source.arena->fd.get(), source.offset + done, piece.data(), count);
      if (status.ok()) status = put({reinterpret_cast<const char*>(piece.data()), count});
    }
  } else if (reader == nullptr) {
    status = put(bytes);
  } else {
    while (status.ok()) {
      auto chunk = reader->Next(UINT64_MAX);
      status = chunk.status();
      if (!chunk.ok() || chunk->bytes.empty()) break;
      status = put(chunk->bytes);
    }
  }
  if (writer == nullptr) return status;
  // Finish also after an error: no copy in flight may arrive when the memory is another buffer's.
  absl::Status finished = writer->Finish();
  return status.ok() ? finished : status;
}

void Scheduler::MoveDone(GlobalTransaction& transaction, int device,
                         const std::shared_ptr<store::Buffer>& buffer,
                         const store::Allocation& target, uint64_t num_writes,
                         absl::Status status) {
  if (ending_ && !status.ok()) return;
  auto it = moves_.find({buffer.get(), device});
  std::vector<std::shared_ptr<Task>> waiters = std::move(it->second.waiters);
  std::vector<std::shared_ptr<Task>> writers = std::move(it->second.writers);
  bool stale = it->second.stale;
  moves_.erase(it);
  // If the move's first task was cancelled, a later one may have changed the buffer. The waiters
  // then need the new content.
  bool current = !stale && buffer->num_writes == num_writes && buffer->replicas.count(device) == 0;
  if (status.ok() && current) {
    buffer->AddReplica(device, target);
    account(device).upload_bytes += buffer->size;
  } else {
    core_->reclaimer->Add({buffer->tenant, device, target});
  }
  for (const auto& task : waiters) {
    --task->num_moves;
    task->move_end = core_->Now();
    if (task->state != TaskState::kPreparing) continue;
    if (status.ok() || !current) {
      Prepare(transaction, task);
    } else {
      EndUnrun(transaction, task, status);
    }
  }
  for (const auto& writer : writers) Evaluate(transaction, writer);
  MemoryChanged(transaction);
}

std::shared_ptr<broker::Worker> Scheduler::WorkerAtHand(
    Lane& lane, const std::shared_ptr<store::Arena>& arena) {
  lane.last_used = core_->Now();
  bool there = lane.worker != nullptr && lane.worker->alive();
  if (there && arena != nullptr) there = MapFor(lane, arena, /*peer=*/false).ok();
  return there ? lane.worker : nullptr;
}

absl::StatusOr<std::shared_ptr<broker::Worker>> Scheduler::BlockingWorker(
    Lane& lane, const std::shared_ptr<store::Arena>& arena, SteadyTime deadline) {
  {
    TenantTransaction transaction(*core_, lane.tenant);
    if (auto worker = WorkerAtHand(lane, arena)) return worker;
  }
  GlobalTransaction transaction(*core_);
  for (int i = 0; i < kMaxTransferTries; ++i) {
    if (absl::Status status = AwaitWorker(transaction, lane, deadline); !status.ok()) return status;
    const std::shared_ptr<broker::Worker> worker = lane.worker;
    if (WorkerAtHand(lane, arena) != nullptr) return worker;
    // The worker died; once that is observed its successor is asked.
    auto known = [&] { return lane.worker != worker || ending_; };
    transaction.Await(absl::Condition(&known), core_->Now() + kDeathNotice);
  }
  return LostWorker();
}

absl::Status Scheduler::AwaitWorker(GlobalTransaction& transaction, Lane& lane,
                                    SteadyTime deadline) {
  while (lane.worker == nullptr) {
    uint64_t tries = lane.num_start_tries;
    ++lane.num_awaiting;  // keeps the worker until this thread has seen it
    StartWorker(transaction, lane);
    // A postponed start is not tried again once the engine ends.
    auto changed = [&] {
      return lane.worker != nullptr || lane.num_start_tries != tries || ending_;
    };
    const bool in_time = transaction.Await(absl::Condition(&changed), deadline);
    --lane.num_awaiting;
    if (lane.worker != nullptr) break;
    if (ending_) return CannotRunNow(lane);
    if (!in_time) {
      return MakeError(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE,
                       "the deadline passed before the device had a process for this tenant");
    }
    if (!lane.start_error.ok()) return lane.start_error;
  }
  return absl::OkStatus();
}

absl::StatusOr<store::Allocation> Scheduler::BlockingAllocate(Lane& lane, uint64_t size,
                                                              SteadyTime deadline) {
  store::Allocation allocation;
  {
    // As a rule the queue's own arenas have room, and no other tenant is concerned.
    TenantTransaction transaction(*core_, lane.tenant);
    if (lane.memory_queue.empty() && memory_.AllocateAtHand(transaction, lane, size, &allocation)) {
      lane.last_used = core_->Now();
      return allocation;
    }
  }
  GlobalTransaction transaction(*core_);
  absl::Status status = AwaitMemory(transaction, lane, size, deadline, [&](uint64_t turn) {
    return Allocate(transaction, lane, size, turn, &allocation);
  });
  if (!status.ok()) return status;
  return allocation;
}

absl::Status Scheduler::AwaitMemory(GlobalTransaction& transaction, Lane& lane, uint64_t size,
                                    SteadyTime deadline,
                                    absl::FunctionRef<Memory::Outcome(uint64_t turn)> take) {
  const bool needs_worker = !lane.description.host_memory() && core_->IsDevice(lane.device);
  int num_workers = 0;
  std::shared_ptr<broker::Worker> asked;
  const uint64_t turn = ++last_memory_turn_;
  SteadyTime give_up = core_->Now() + core_->options.memory_patience;
  while (true) {
    // A worker that dies while it makes an arena has a successor.
    if (needs_worker && (lane.worker == nullptr || lane.worker != asked)) {
      if (++num_workers > kMaxTransferTries) return LostWorker();
      if (absl::Status status = AwaitWorker(transaction, lane, deadline); !status.ok())
        return status;
      asked = lane.worker;
      // The patience is for memory that others hold, not for a worker's start.
      give_up = core_->Now() + core_->options.memory_patience;
    }
    uint64_t seen = memory_changes_;
    Memory::Outcome outcome = take(turn);
    // Memory of running tasks is freed when they end, which is worth a short wait.
    bool wait =
        !ending_ && (outcome == Memory::Outcome::kLater || MayComeFree(transaction, lane.device));
    if (outcome != Memory::Outcome::kAllocated) {
      outcome = wait && core_->Now() < give_up ? Memory::Outcome::kLater : Memory::Outcome::kFull;
    }
    switch (outcome) {
      case Memory::Outcome::kAllocated:
        return absl::OkStatus();
      case Memory::Outcome::kFull:
        if (!lane.grow_lack.ok()) return lane.grow_lack;
        return OutOfMemory(lane.description.id(), size, memory_.limit_bytes(lane.device));
      case Memory::Outcome::kLater: {
        auto changed = [&] { return memory_changes_ != seen || ending_; };
        ++num_memory_waiters_;  // or no change would be notified
        transaction.Await(absl::Condition(&changed), give_up);
        --num_memory_waiters_;
      }
    }
  }
}

}  // namespace stride::scheduler
