#include "server/engine/transfers/receivers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/block_pool.h"
#include "server/base/error.h"
#include "server/engine/core/array_spec.h"
#include "server/engine/operations/resolve_operation.h"
#include "server/engine/persistence/journal_writer.h"
#include "server/engine/sharding/shard_layout.h"
#include "server/engine/transfers/host_access.h"
#include "server/recovery/records.pb.h"

namespace stride::engine {

using session::ArrayPtr;

namespace {

absl::Status NotReady(std::string_view message) {
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_ARRAY_NOT_READY,
                   message);
}

// The task for which others wait until every byte has arrived.
std::shared_ptr<Task> MakeTask(const session::Array& array) {
  return HostTask(array.buffer->tenant, "upload",
                  {.buffer = array.buffer, .write = true, .fresh = true});
}

std::shared_ptr<Task> TaskOf(const session::Receiving& receiving) {
  return std::static_pointer_cast<Task>(receiving.access);
}

}  // namespace

void Receivers::EndParts(TenantTransaction& transaction, absl::Span<const ArrayPtr> parts,
                         const absl::Status& status) {
  for (const ArrayPtr& part : parts) {
    auto receiving = std::exchange(part->receiving, nullptr);
    // A part that was refused has no task.
    if (receiving != nullptr && receiving->access != nullptr)
      scheduler_->Complete(transaction, TaskOf(*receiving), status);
  }
}

void Receivers::Cancel(TenantTransaction& transaction, const ArrayPtr& array) {
  EndParts(transaction, session::PartsOf(array),
           MakeError(absl::StatusCode::kCancelled, v1::ERROR_REASON_CANCELLED,
                     "the array was deleted during its upload"));
}

int Receivers::HomeDevice(TenantTransaction& transaction, const TenantId& tenant,
                          const session::ArrayName& name, int64_t bytes) {
  std::shared_ptr<session::Session> session;
  if (!name.session.empty()) {
    auto found = core_->catalogue.FindSession(transaction, tenant, name.session, core_->Now());
    if (found.ok()) session = *found;
  }
  auto room = [&](int device) {
    if (!scheduler_->health().Serves(device)) return INT64_MIN;
    return static_cast<int64_t>(scheduler_->memory().arenas().limit_bytes(device)) -
           static_cast<int64_t>(scheduler_->memory().arenas().arena_bytes(transaction, device));
  };
  if (session != nullptr && session->home_device >= 0 && room(session->home_device) >= bytes)
    return session->home_device;
  int best = 0;
  for (size_t i = 1; i < core_->broker->devices().size(); ++i) {
    double load = scheduler_->placer().QueueSeconds(transaction, static_cast<int>(i)),
           best_load = scheduler_->placer().QueueSeconds(transaction, best);
    bool both_serve = room(i) != INT64_MIN && room(best) != INT64_MIN;
    bool better = both_serve && load != best_load ? load < best_load : room(i) > room(best);
    if (better) best = static_cast<int>(i);
  }
  if (session != nullptr && session->home_device < 0) session->home_device = best;
  return best;
}

absl::StatusOr<ArrayPtr> Receivers::FindOrMake(TenantTransaction& transaction,
                                               const TenantId& tenant,
                                               const session::ArrayName& name,
                                               const v1::PutArrayRequest::Header& header,
                                               const ArrayInfo& info) {
  auto found = core_->catalogue.FindArray(transaction, tenant, name, core_->Now());
  if (found.ok()) {
    absl::Status status = CheckExisting(*found, name, header, info);
    if (!status.ok()) return status;
    return found;
  }
  if (ReasonOf(found.status()) != v1::ERROR_REASON_ARRAY_NOT_FOUND) return found.status();
  if (!name.tenant.empty() && name.tenant != tenant.value) return found.status();
  return Make(transaction, tenant, name, header, info);
}

absl::Status Receivers::CheckExisting(const ArrayPtr& array, const session::ArrayName& name,
                                      const v1::PutArrayRequest::Header& header,
                                      const ArrayInfo& info) const {
  const absl::Status& status = array->status();
  if (!session::IsReceiving(*array) && !header.overwrite()) {
    return MakeError(
        absl::StatusCode::kAlreadyExists, v1::ERROR_REASON_ALREADY_EXISTS,
        absl::StrCat("the array exists already",
                     status.ok() ? "; set `overwrite`, delete" : " and has failed; delete",
                     " it first or choose another name: ", name.ToString()),
        {{"name", name.ToString()}});
  }
  if (!status.ok()) return status;
  if (array->info->dtype != info.dtype || array->info->shape != info.shape) {
    return InvalidField(
        v1::ERROR_REASON_SHAPE_MISMATCH, "spec",
        "every range of one array has the same dtype and shape; these differ from the first");
  }
  if (!header.has_sharding()) return absl::OkStatus();
  auto spread = operations_->ReadSharding(header.sharding(), info.shape.size(), "sharding");
  if (!spread.ok()) return spread.status();
  // Which devices serve may have changed since the first range.
  if (header.sharding().devices().empty() && array->shards != nullptr)
    spread->devices = array->shards->devices;
  if (array->shards != nullptr && SpreadOf(*array->shards) == *spread) return absl::OkStatus();
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "sharding",
                      "the array is there and is not spread in this way; leave this unset, "
                      "or repeat what the first range had");
}

absl::StatusOr<ops::Spread> Receivers::SpreadFor(TenantTransaction& transaction,
                                                 const TenantId& tenant,
                                                 const session::ArrayName& name,
                                                 const v1::PutArrayRequest::Header& header,
                                                 const ArrayInfo& info) {
  if (header.has_sharding())
    return operations_->ReadSharding(header.sharding(), info.shape.size(), "sharding");
  ops::Spread one{.replicated = true};
  if (header.device().empty()) {
    one.devices.push_back(HomeDevice(transaction, tenant, name, info.size_bytes()));
  } else {
    auto device = FindDevice(*core_, header.device());
    if (!device.ok()) return device.status();
    one.devices.push_back(*device);
  }
  return one;
}

absl::StatusOr<ArrayPtr> Receivers::Make(TenantTransaction& transaction, const TenantId& tenant,
                                         const session::ArrayName& name,
                                         const v1::PutArrayRequest::Header& header,
                                         const ArrayInfo& info) {
  auto expire = ExpireTime(header.has_ttl(), header.ttl(), !name.session.empty(), core_->Now());
  if (!expire.ok()) return expire.status();
  auto spread = SpreadFor(transaction, tenant, name, header, info);
  if (!spread.ok()) return spread.status();
  const auto num_copies = static_cast<int64_t>(spread->replicated ? spread->devices.size() : 1);
  absl::Status status = core_->accounts->CheckArrayBytes(tenant, info.size_bytes() * num_copies);
  if (!status.ok()) return status;
  session::ArrayList parts;
  status = AddParts(transaction, tenant, info, *spread, &parts);
  ArrayPtr array;
  if (status.ok()) {
    array = header.has_sharding() ? WholeOf(info, *spread, parts) : parts[0];
    array->expire_time = *expire;
    status = operations_->CheckKept(array, name);
  }
  if (status.ok())
    status = core_->catalogue.AddArray(transaction, tenant, name, array, core_->Now());
  if (status.ok()) return array;
  EndParts(transaction, parts, status);
  return status;
}

absl::Status Receivers::AddParts(TenantTransaction& transaction, const TenantId& tenant,
                                 const ArrayInfo& info, const ops::Spread& spread,
                                 session::ArrayList* parts) {
  for (size_t i = 0; i < spread.devices.size(); ++i) {
    // The upload fills the first part of a replicated array; the others are copies of it.
    if (spread.replicated && i > 0) {
      auto copy = operations_->CopyTo(transaction, tenant, (*parts)[0], spread.devices[i]);
      if (!copy.ok()) return copy.status();
      parts->push_back(*std::move(copy));
      continue;
    }
    auto part = MakePooled<session::Array>();
    part->info = PartInfo(info, spread, i);
    part->create_time = core_->Now();
    part->buffer = MakePooled<store::Buffer>(tenant, part->info->size_bytes(), core_->reclaimer);
    Begin(*part, scheduler_->memory().HomeOf(part->info->size_bytes(), spread.devices[i]));
    std::shared_ptr<Task> task = MakeTask(*part);
    parts->push_back(part);
    if (absl::Status status = scheduler_->Enqueue(transaction, task); !status.ok()) return status;
    Add(transaction, part, std::move(task));
  }
  return absl::OkStatus();
}

void Receivers::Begin(session::Array& array, int device) {
  array.receiving = std::make_shared<session::Receiving>();
  array.receiving->device = device;
  array.receiving->lease_end = core_->Now() + core_->options.upload_lease;
  array.buffer->SetIncoming(true);
}

void Receivers::Add(TenantTransaction& transaction, const ArrayPtr& array,
                    std::shared_ptr<Task> task) {
  array->receiving->access = std::move(task);
  array->receiving->CountFor(*core_->accounts->ControlOf(array->buffer->tenant));
  incoming_.Of(transaction, array->buffer->tenant).push_back({array, array->receiving});
}

void Receivers::Restore(GlobalTransaction& transaction, const ArrayPtr& array, int device,
                        const recovery::ReceivingRecord& record) {
  Begin(*array, device);
  // Ranges of bytes whose memory is gone never arrived.
  bool there = array->buffer->replicas.count(device) > 0;
  for (int i = 0; there && i < std::min(record.begin_size(), record.end_size()); ++i) {
    array->receiving->ranges.Add(record.begin(i), record.end(i));
  }
  std::shared_ptr<Task> task = MakeTask(*array);
  scheduler_->Restore(transaction, task);
  scheduler_->Resume(transaction, task);
  Add(transaction, array, std::move(task));
}

void Receivers::EndLeases(GlobalTransaction& transaction, SteadyTime now) {
  for (auto& incoming : incoming_.All(transaction)) EndLeases(transaction, incoming, now);
}

void Receivers::EndLeases(GlobalTransaction& transaction, std::vector<Incoming>& all,
                          SteadyTime now) {
  for (Incoming& incoming : all) {
    ArrayPtr array = incoming.array.lock();
    if (array == nullptr) {
      // No call can continue the upload, and tasks may wait for its bytes. No effect if the upload
      // was complete.
      scheduler_->Complete(transaction, TaskOf(*incoming.receiving),
                           NotReady("the array was released before its upload was complete"));
    } else if (array->receiving != nullptr) {
      if (array->receiving->num_calls > 0 || array->receiving->lease_end > now) continue;
      array->receiving = nullptr;
      scheduler_->Complete(
          transaction, TaskOf(*incoming.receiving),
          NotReady("the upload was left incomplete and its lease has ended; delete the "
                   "array, then upload it again"));
      array->buffer->KeepOnly(-1);  // the partial bytes
      core_->journal_writer->Changed(transaction, array);
    }
    incoming.receiving = nullptr;
  }
  std::erase_if(all, [](const Incoming& incoming) { return incoming.receiving == nullptr; });
}

}  // namespace stride::engine
