#include "server/engine/transfers/write_access.h"

#include <utility>

#include "server/base/error.h"
#include "server/engine/memory/lent_for_reading.h"
#include "server/engine/persistence/describe.h"
#include "server/engine/persistence/journal_writer.h"
#include "server/engine/transfers/array_writer.h"

namespace stride::engine {

void RangeAccess::Hold() {
  if (!std::exchange(holding_, true)) ++array_->buffer->pin_count;
}

void RangeAccess::LetGo(TenantTransaction& transaction) {
  if (std::exchange(holding_, false)) scheduler_->memory().Unpin(transaction, *array_->buffer);
}

absl::StatusOr<v1::Array> RangeAccess::Complete() {
  TenantTransaction transaction(*core_, array_->buffer->tenant);
  // The array was deleted during the upload; views of it carry the error.
  if (!array_->buffer->error.ok()) return array_->buffer->error;
  Completed(transaction);
  return Describe(*core_, *array_);
}

ReceiveAccess::ReceiveAccess(TenantTransaction& transaction, Core* core, Scheduler* scheduler,
                             session::ArrayPtr array, Bytes range)
    : RangeAccess(core, scheduler, std::move(array), range), receiving_(array_->receiving) {
  ++receiving_->num_calls;
  receiving_->lease_end = SteadyTime::InfiniteFuture();
}

absl::StatusOr<RangeAccess::Target> ReceiveAccess::Open() {
  // One call allocates the memory, and concurrent ones then find it.
  absl::MutexLock allocation_lock(&receiving_->allocation);
  DeviceQueue* queue;
  {
    TenantTransaction transaction(*core_, array_->buffer->tenant);
    if (!array_->buffer->error.ok()) return array_->buffer->error;
    Hold();
    queue = &scheduler_->queues().Get(transaction, array_->buffer->tenant, receiving_->device);
    auto it = array_->buffer->replicas.find(receiving_->device);
    if (it != array_->buffer->replicas.end()) return Target{queue, it->second};
  }
  auto target = Allocate(queue);
  if (!target.ok()) return target;
  TenantTransaction transaction(*core_, array_->buffer->tenant);
  if (receiving_->device != target->queue->device) {
    receiving_->device = target->queue->device;
    core_->journal_writer->Changed(transaction, array_);
  }
  array_->buffer->AddReplica(receiving_->device, target->block);
  return target;
}

absl::StatusOr<RangeAccess::Target> ReceiveAccess::Allocate(DeviceQueue* queue) {
  auto block = scheduler_->memory().BlockingAllocate(*queue, array_->buffer->size);
  if (absl::IsResourceExhausted(block.status()) && queue->device == core_->memory_place()) {
    // An array larger than the device may lie in a file too.
    {
      TenantTransaction transaction(*core_, array_->buffer->tenant);
      queue = &scheduler_->queues().Get(transaction, array_->buffer->tenant, core_->disk_place());
    }
    auto in_file = scheduler_->memory().BlockingAllocate(*queue, array_->buffer->size);
    if (in_file.ok()) block = std::move(in_file);
  }
  if (!block.ok()) return block.status();
  return Target{queue, *block};
}

void ReceiveAccess::Completed(TenantTransaction& transaction) {
  receiving_->AddRange(range_.begin, range_.end);
  core_->journal_writer->Changed(transaction, array_);
  core_->device_accounts[receiving_->device].upload_bytes += range_.end - range_.begin;
  if (!receiving_->ranges.Covers(array_->info->size_bytes())) return;
  array_->receiving.reset();
  array_->buffer->SetIncoming(false);
  scheduler_->Complete(transaction, std::static_pointer_cast<Task>(receiving_->access),
                       absl::OkStatus());
}

// The bytes written so far stay, so that the client can continue after them.
void ReceiveAccess::Keep(int64_t size) {
  TenantTransaction transaction(*core_, array_->buffer->tenant);
  if (array_->receiving == nullptr) return;
  receiving_->AddRange(range_.begin, range_.begin + size);
  core_->journal_writer->Changed(transaction, array_);
}

ReceiveAccess::~ReceiveAccess() {
  TenantTransaction transaction(*core_, array_->buffer->tenant);
  LetGo(transaction);
  --receiving_->num_calls;
  receiving_->lease_end = core_->Now() + core_->options.upload_lease;
}

absl::StatusOr<std::unique_ptr<OverwriteAccess>> OverwriteAccess::Enqueue(
    TenantTransaction& transaction, Core* core, Scheduler* scheduler, const TenantId& tenant,
    session::ArrayPtr array, Bytes range) {
  if (!array->info->IsContiguous()) {
    return InvalidField(
        v1::ERROR_REASON_WRONG_STATE, "array_id",
        "a view with gaps cannot be overwritten from the wire; copy into it instead");
  }
  auto task = HostTask(tenant, "overwrite", {.buffer = array->buffer, .read = true, .write = true});
  auto access =
      std::make_unique<OverwriteAccess>(core, scheduler, std::move(task), std::move(array), range);
  absl::Status status = access->access_.Enqueue(transaction);
  if (!status.ok()) return status;
  return access;
}

absl::Status OverwriteAccess::Await(SteadyTime deadline) {
  // A write that a later operation lost does not concern this one.
  return access_.Await(deadline, kInUse, nullptr);
}

absl::StatusOr<RangeAccess::Target> OverwriteAccess::Open() {
  TenantTransaction transaction(*core_, array_->buffer->tenant);
  if (!array_->buffer->error.ok()) return array_->buffer->error;
  if (array_->buffer->num_loans > 0) return LentForReading();
  auto& replicas = array_->buffer->replicas;
  if (replicas.empty()) {
    return MakeError(absl::StatusCode::kDataLoss, v1::ERROR_REASON_DATA_LOST,
                     "the array's only copy is gone");
  }
  Hold();
  const auto [device, block] = *replicas.begin();
  array_->buffer->KeepOnly(device);
  ++array_->buffer->num_writes;
  return Target{&scheduler_->queues().Get(transaction, array_->buffer->tenant, device), block};
}

OverwriteAccess::~OverwriteAccess() {
  if (!holding_) return;
  TenantTransaction transaction(*core_, array_->buffer->tenant);
  LetGo(transaction);
  access_.End(transaction);
}

absl::StatusOr<std::unique_ptr<Upload>> OpenUpload(Core* core, Scheduler* scheduler,
                                                   std::unique_ptr<RangeAccess> access,
                                                   SteadyTime deadline,
                                                   std::shared_ptr<Region> region) {
  auto target = access->Open();
  if (!target.ok()) return target.status();
  auto writer = std::make_unique<ArrayWriter>(core, scheduler);
  const int64_t size = access->range().end - access->range().begin;
  absl::Status status =
      writer->Open(*target->queue, target->block,
                   access->array().info->offset + access->range().begin, deadline, region);
  auto upload =
      std::make_unique<Upload>(size, std::move(access), std::move(writer), std::move(region));
  if (!status.ok()) return status;
  return upload;
}

}  // namespace stride::engine
