#include "server/engine/memory/migration.h"

#include <string>
#include <utility>

#include "server/base/error.h"
#include "server/engine/memory/staged_copy.h"

namespace stride::engine {
namespace {

constexpr int64_t kCopyAtOnceBytes = 64 << 10;

}  // namespace

void Migration::Start(GlobalTransaction& transaction, const std::shared_ptr<Task>& task,
                      const std::shared_ptr<store::Buffer>& buffer,
                      const store::Allocation& target) {
  DeviceQueue& queue = *task->queue;
  copies_->Begin(transaction, *buffer, queue.device);
  copies_->AwaitInput(transaction, task, *buffer, queue.device);
  if (task->timeline.move_start == SteadyTime()) task->timeline.move_start = core_->Now();
  bool returns = !buffer->replicas.empty() && !core_->IsDevice(buffer->replicas.begin()->first);
  if (returns) returned_bytes_ += buffer->size;
  auto copy = [this, queue = &queue, buffer, target, num_writes = buffer->num_writes] {
    absl::Status status = CopyWithSuccessors([&] { return Bring(buffer, *queue, target); });
    GlobalTransaction transaction(*core_);
    Ended(transaction, queue->device, buffer, target, num_writes, std::move(status));
  };
  if (!StartOnDevice(transaction, queue, buffer, target, copy))
    core_->executor.Run(std::move(copy));
}

const void* Migration::BytesAtHand(const store::Buffer& buffer, const store::Allocation& target) {
  if (!target.mapped() || buffer.size > kCopyAtOnceBytes) return nullptr;
  if (buffer.inline_bytes != nullptr) return buffer.inline_bytes->data();
  for (const auto& [place, replica] : buffer.replicas) {
    if (replica.mapped()) return replica.data();
  }
  return nullptr;
}

// A peer is best, then host memory.
Migration::Source Migration::FindSource(TenantTransaction& transaction, const store::Buffer& buffer,
                                        const DeviceQueue& to) {
  Source source{.inline_bytes = buffer.inline_bytes};
  if (source.inline_bytes != nullptr) return source;
  for (const auto& [place, replica] : buffer.replicas) {
    if (source.is_peer) break;
    const bool is_peer = !replica.mapped() && peers_->IsPeer(place, to.device);
    if (source.from != nullptr && !is_peer && !core_->MemorySpace(place).host_memory()) continue;
    source.from = &queues_->Get(transaction, buffer.tenant, place);
    source.block = replica;
    source.is_peer = is_peer;
  }
  return source;
}

// One command to the worker, for which no thread waits. `otherwise` is called where the copy fails.
bool Migration::StartOnDevice(TenantTransaction& transaction, DeviceQueue& to,
                              const std::shared_ptr<store::Buffer>& buffer,
                              const store::Allocation& target, std::function<void()> otherwise) {
  const Source source = FindSource(transaction, *buffer, to);
  std::shared_ptr<broker::Worker> worker = to.worker;
  if (!source.is_peer || worker == nullptr || !worker->alive()) return false;
  if (!MapArena(to, target.arena, /*peer=*/false).ok()) return false;
  if (!MapArena(to, source.block.arena, /*peer=*/true).ok()) return false;
  ++to.num_copies;
  ++source.from->num_copies;
  auto done = [this, to = &to, from = source.from, buffer, block = source.block, target,
               num_writes = buffer->num_writes, asked = std::weak_ptr(worker),
               otherwise = std::move(otherwise)](absl::Status status) {
    GlobalTransaction transaction(*core_);
    --to->num_copies;
    --from->num_copies;
    if (status.ok()) {
      PeerReads::NoteCopy(transaction, *to, asked, *block.arena);
      Ended(transaction, to->device, buffer, target, num_writes, std::move(status));
    } else {
      core_->executor.Run(otherwise);
    }
  };
  // After the transaction, since a worker that has ended may answer at once.
  transaction.Defer([worker = std::move(worker), block = source.block, target,
                     size = static_cast<uint64_t>(buffer->size), done = std::move(done)] {
    worker->CopyFromPeer(target.arena->id, target.offset, block.arena->id, block.offset, size,
                         done);
  });
  return true;
}

absl::Status Migration::Bring(const std::shared_ptr<store::Buffer>& buffer, DeviceQueue& to,
                              const store::Allocation& target) {
  // The tasks that wait for this copy read the buffer, so no writer changes its content or
  // replicas. Once all of them are cancelled a writer can, and the copy is stale.
  Source source;
  {
    GlobalTransaction transaction(*core_);
    source = FindSource(transaction, *buffer, to);
  }
  if (source.inline_bytes != nullptr) return copier_->CopyBytes(*source.inline_bytes, to, target);
  if (source.from == nullptr) {
    return MakeError(absl::StatusCode::kDataLoss, v1::ERROR_REASON_DATA_LOST,
                     "the array's only copy is gone");
  }
  const auto size = static_cast<uint64_t>(buffer->size);
  if (source.is_peer) {
    absl::Status copied = copier_->CopyFromPeer(*source.from, source.block, to, target, size);
    if (copied.ok() || MayGoOn(copied)) return copied;
    GlobalTransaction transaction(*core_);
    peers_->Break(transaction, source.from->device, to.device, copied);
  }
  return copier_->Copy(*source.from, source.block, to, target, size);
}

void Migration::Ended(GlobalTransaction& transaction, int device,
                      const std::shared_ptr<store::Buffer>& buffer, const store::Allocation& target,
                      uint64_t num_writes, absl::Status status) {
  if (core_->ending && !status.ok()) return;
  const CopiesInFlight::Copy copy = copies_->End(transaction, *buffer, device);
  // If the first task that waits was cancelled, a later one may have changed the buffer. The other
  // tasks then need the new content.
  bool current =
      !copy.stale && buffer->num_writes == num_writes && buffer->replicas.count(device) == 0;
  if (status.ok() && current) {
    buffer->AddReplica(device, target);
    core_->device_accounts[device].upload_bytes += buffer->size;
  } else {
    core_->reclaimer->Add({buffer->tenant, device, target});
  }
  for (const auto& task : copy.readers) {
    --task->memory.num_moves;
    task->timeline.move_end = core_->Now();
    if (task->state != TaskState::kPreparing) continue;
    if (status.ok() || !current) {
      events_->Prepare(transaction, task);
    } else {
      events_->EndUnrun(transaction, task, status);
    }
  }
  for (const auto& writer : copy.writers) events_->Evaluate(transaction, writer);
  waiters_->Changed(transaction);
}

}  // namespace stride::engine
