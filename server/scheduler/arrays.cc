#include "server/scheduler/arrays.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/block_pool.h"
#include "server/base/error.h"
#include "server/base/page_size.h"
#include "server/base/surroundings.h"
#include "server/recovery/records.pb.h"
#include "server/scheduler/answer.h"
#include "server/scheduler/array_spec.h"
#include "server/scheduler/describe.h"
#include "server/scheduler/durability.h"
#include "server/scheduler/recorder.h"
#include "server/scheduler/sharded.h"
#include "server/scheduler/sharded_transfers.h"
#include "server/scheduler/shared_by_copy.h"
#include "server/scheduler/transfers.h"

namespace stride::scheduler {

using ArrayPtr = std::shared_ptr<session::Array>;

namespace {

// Most bytes to copy inside a transaction: about a microsecond.
constexpr int64_t kMostReadAtOnce = 16 << 10;
// Most ranges of one upload. Every description of the array lists them.
constexpr size_t kMaxUploadRanges = 10000;
constexpr char kNotBoth[] = "an array is on one device or spread over several; not with `sharding`";

absl::StatusOr<SteadyTime> ExpireTime(bool has_ttl, const google::protobuf::Duration& ttl,
                                      const session::ArrayName& name, SteadyTime now) {
  if (!has_ttl) return SteadyTime::InfiniteFuture();
  absl::Duration duration = absl::Seconds(ttl.seconds()) + absl::Nanoseconds(ttl.nanos());
  if (!name.session.empty()) {
    return InvalidField(
        v1::ERROR_REASON_INVALID_FIELD, "ttl",
        "a session's array lives as long as its session; only named arrays have a ttl");
  }
  if (duration <= absl::ZeroDuration())
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "ttl", "a lifetime is more than 0");
  return now + duration;
}

// Without its bytes.
v1::InlineArray Empty(const ArrayInfo& info) {
  v1::InlineArray out;
  out.mutable_spec()->set_data_type(static_cast<v1::DataType>(info.dtype));
  for (int64_t extent : info.shape) out.mutable_spec()->add_shape(extent);
  return out;
}

absl::StatusOr<v1::InlineArray> ReadWhole(const ArrayInfo& info, Download& download) {
  v1::InlineArray out = Empty(info);
  int64_t size = info.size_bytes();
  out.mutable_data()->reserve(size);
  while (true) {
    auto chunk = download.Next(size);
    if (!chunk.ok()) return chunk.status();
    if (chunk->bytes.empty()) return out;
    out.mutable_data()->append(chunk->bytes);
  }
}

// The arrays that hold the bytes: the array itself, or its parts.
session::ArrayList PartsOf(const ArrayPtr& array) {
  if (array->shards == nullptr) return {array};
  return array->shards->parts;
}

bool IsReceiving(const ArrayPtr& array) {
  const auto parts = PartsOf(array);
  return std::any_of(parts.begin(), parts.end(),
                     [](const ArrayPtr& part) { return part->receiving != nullptr; });
}

}  // namespace

void NotifyOnce(Task& task, std::shared_ptr<absl::Notification> granted) {
  auto told = std::make_shared<std::atomic_flag>();
  auto notify = [granted = std::move(granted), told] {
    if (!told->test_and_set()) granted->Notify();
  };
  task.granted = std::make_unique<const std::function<void()>>(notify);
  task.on_done.push_back([notify](const absl::Status&) { notify(); });
}

absl::StatusOr<std::shared_ptr<ReadAccess>> ReadAccess::Enqueue(TenantTransaction& transaction,
                                                                Core* core, Scheduler* scheduler,
                                                                Operations* operations,
                                                                const TenantId& tenant,
                                                                ArrayPtr array, bool of_body) {
  auto granted = std::make_shared<absl::Notification>();
  auto task = MakePooled<Task>();
  task->tenant = tenant;
  task->label = "read";
  task->host_access = true;
  task->piece = task->of_body = of_body;
  if (!array->status().ok()) return array->status();
  if (!array->info->IsContiguous()) {
    auto contiguous = operations->MakeContiguous(transaction, tenant, array);
    if (!contiguous.ok()) return contiguous.status();
    array = *contiguous;
  }
  task->uses.push_back({.buffer = array->buffer, .read = true, .held = of_body});
  NotifyOnce(*task, granted);
  if (absl::Status status = scheduler->Enqueue(transaction, task); !status.ok()) return status;
  return std::make_shared<ReadAccess>(core, scheduler, std::move(task), std::move(array),
                                      std::move(granted));
}

absl::StatusOr<std::shared_ptr<ReadAccess>> ReadAccess::Begin(Core* core, Scheduler* scheduler,
                                                              Operations* operations,
                                                              const TenantId& tenant,
                                                              ArrayPtr array, SteadyTime deadline) {
  absl::StatusOr<std::shared_ptr<ReadAccess>> access = nullptr;
  {
    TenantTransaction transaction(*core, tenant);
    access = Enqueue(transaction, core, scheduler, operations, tenant, std::move(array));
  }
  if (!access.ok()) return access.status();
  if (absl::Status status = (*access)->Await(deadline); !status.ok()) return status;
  return access;
}

absl::Status ReadAccess::Await(SteadyTime deadline) {
  if (!stride::Await(*granted_, deadline)) {
    return MakeError(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE,
                     "the deadline passed before the array was ready");
  }
  TenantTransaction transaction(*core_, task_->tenant);
  if (task_->state == TaskState::kDone && !task_->result.ok()) return task_->result;
  return array_->status();
}

ReadAccess::~ReadAccess() {
  TenantTransaction transaction(*core_, task_->tenant);
  scheduler_->Finish(transaction, task_, absl::OkStatus());
}

absl::StatusOr<v1::Array> Arrays::Create(const TenantId& tenant,
                                         const v1::CreateArrayRequest& request) {
  auto name = session::MakeArrayName(request.parent(), request.array_id(), "parent", "array_id");
  if (!name.ok()) return name.status();
  auto info = CheckSpec(request.spec(), core_->options.max_array_bytes, "spec");
  if (!info.ok()) return info.status();
  auto expire = ExpireTime(request.has_ttl(), request.ttl(), *name, core_->Now());
  if (!expire.ok()) return expire.status();
  v1::Operation fill;
  *fill.mutable_creation()->mutable_fill()->mutable_spec() = request.spec();
  fill.set_device(request.device());
  if (request.has_sharding() && !request.device().empty())
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "device", kNotBoth);
  std::string session;
  if (!name->session.empty()) {
    session = request.parent();
    fill.add_outputs()->set_handle(name->handle);
  } else {
    fill.add_outputs()->set_name(name->ToString());
  }
  if (request.has_sharding()) *fill.mutable_outputs(0)->mutable_sharding() = request.sharding();
  auto accepted = operations_->Accept(tenant, session, fill, SteadyTime::InfiniteFuture());
  if (!accepted.ok()) return accepted.status();
  TenantTransaction transaction(*core_, tenant);
  accepted->outputs[0]->expire_time = *expire;
  core_->recorder->Changed(transaction, accepted->outputs[0]);
  if (core_->durability != nullptr) core_->durability->Changed(transaction, *accepted->outputs[0]);
  return Describe(*core_, *accepted->outputs[0]);
}

absl::StatusOr<v1::Array> Arrays::Get(const TenantId& tenant, const std::string& name) {
  auto parsed = session::ParseArrayName(name, "name");
  if (!parsed.ok()) return parsed.status();
  TenantTransaction transaction(*core_, tenant);
  auto array = core_->catalogue.FindArray(transaction, tenant, *parsed, core_->Now());
  if (!array.ok()) return array.status();
  return Describe(*core_, **array);
}

absl::StatusOr<v1::ListArraysResponse> Arrays::List(const TenantId& tenant,
                                                    const v1::ListArraysRequest& request) {
  auto page_size = PageSize(request.page_size());
  if (!page_size.ok()) return page_size.status();
  v1::ListArraysResponse response;
  TenantTransaction transaction(*core_, tenant);
  auto found = core_->catalogue.ListArrays(transaction, tenant, request.parent(), *page_size,
                                           request.page_token(), core_->Now());
  if (!found.ok()) return found.status();
  // As they are at one moment, and so in the transaction: of its own tenants alone, no more than a
  // page has.
  WritePage(
      *found, *page_size,
      [this](const ArrayPtr& array, v1::Array* listed) { Describe(*core_, *array, listed); },
      response.mutable_arrays(), response.mutable_next_page_token());
  return response;
}

absl::Status Arrays::Delete(const TenantId& tenant, const std::string& name) {
  auto parsed = session::ParseArrayName(name, "name");
  if (!parsed.ok()) return parsed.status();
  uint64_t before = 0, after = 0;  // numbers of the store's latest change
  auto last = [&] { return core_->durability != nullptr ? core_->durability->last() : 0; };
  absl::Status status;
  auto remove = [&](TenantTransaction& transaction) {
    before = last();
    status = Remove(transaction, tenant, *parsed);
    after = last();
  };
  if (parsed->session.empty()) {
    GlobalTransaction transaction(*core_);
    remove(transaction);
  } else {
    TenantTransaction transaction(*core_, tenant);
    remove(transaction);
  }
  // Wait for the disk, so that the deletion survives a reboot.
  if (after != before) core_->durability->Await(after);
  return status;
}

absl::Status Arrays::Remove(TenantTransaction& transaction, const TenantId& tenant,
                            const session::ArrayName& name) {
  auto removed = core_->catalogue.RemoveArray(transaction, tenant, name, core_->Now());
  if (!removed.ok()) return removed.status();
  for (const ArrayPtr& part : PartsOf(*removed)) {
    auto receiving = std::exchange(part->receiving, nullptr);
    if (receiving == nullptr) continue;
    scheduler_->Finish(transaction, std::static_pointer_cast<Task>(receiving->access),
                       MakeError(absl::StatusCode::kCancelled, v1::ERROR_REASON_CANCELLED,
                                 "the array was deleted during its upload"));
  }
  return absl::OkStatus();
}

int Arrays::HomeDevice(TenantTransaction& transaction, const TenantId& tenant,
                       const session::ArrayName& name, int64_t bytes) {
  std::shared_ptr<session::Session> session;
  if (!name.session.empty()) {
    auto found = core_->catalogue.FindSession(transaction, tenant, name.session, core_->Now());
    if (found.ok()) session = *found;
  }
  auto room = [&](int device) {
    if (!scheduler_->health().Serves(device)) return INT64_MIN;
    return static_cast<int64_t>(scheduler_->memory().limit_bytes(device)) -
           static_cast<int64_t>(scheduler_->memory().arena_bytes(transaction, device));
  };
  if (session != nullptr && session->home_device >= 0 && room(session->home_device) >= bytes)
    return session->home_device;
  int best = 0;
  for (size_t i = 1; i < core_->broker->devices().size(); ++i) {
    double load = scheduler_->QueueSeconds(transaction, static_cast<int>(i)),
           best_load = scheduler_->QueueSeconds(transaction, best);
    bool both_serve = room(i) != INT64_MIN && room(best) != INT64_MIN;
    bool better = both_serve && load != best_load ? load < best_load : room(i) > room(best);
    if (better) best = static_cast<int>(i);
  }
  if (session != nullptr && session->home_device < 0) session->home_device = best;
  return best;
}

absl::StatusOr<ArrayPtr> Arrays::FindOrBeginReceiving(TenantTransaction& transaction,
                                                      const TenantId& tenant,
                                                      const session::ArrayName& name,
                                                      const v1::PutArrayRequest::Header& header,
                                                      const ArrayInfo& info) {
  auto found = core_->catalogue.FindArray(transaction, tenant, name, core_->Now());
  if (found.ok()) {
    if (!IsReceiving(*found) && !header.overwrite()) {
      return MakeError(
          absl::StatusCode::kAlreadyExists, v1::ERROR_REASON_ALREADY_EXISTS,
          absl::StrCat(
              "the array exists already; set `overwrite`, delete it first or choose another name: ",
              name.ToString()),
          {{"name", name.ToString()}});
    }
    if (!(*found)->status().ok()) return (*found)->status();
    if ((*found)->info->dtype != info.dtype || (*found)->info->shape != info.shape) {
      return InvalidField(
          v1::ERROR_REASON_SHAPE_MISMATCH, "spec",
          "every range of one array has the same dtype and shape; these differ from the first");
    }
    if (header.has_sharding()) {
      auto spread = operations_->ReadSharding(header.sharding(), info.shape.size(), "sharding");
      if (!spread.ok()) return spread.status();
      // Which devices serve may have changed since the first range.
      if (header.sharding().devices().empty() && (*found)->shards != nullptr)
        spread->devices = (*found)->shards->devices;
      if ((*found)->shards == nullptr || SpreadOf(*(*found)->shards) != *spread) {
        return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "sharding",
                            "the array is there and is not spread in this way; leave this unset, "
                            "or repeat what the first range had");
      }
    }
    return *found;
  }
  if (ReasonOf(found.status()) != v1::ERROR_REASON_ARRAY_NOT_FOUND) return found.status();
  if (!name.tenant.empty() && name.tenant != tenant.value) return found.status();
  auto expire = ExpireTime(header.has_ttl(), header.ttl(), name, core_->Now());
  if (!expire.ok()) return expire.status();
  if (header.has_sharding())
    return MakeShardedReceiver(transaction, tenant, name, header, info, *expire);
  int device = 0;
  if (header.device().empty()) {
    device = HomeDevice(transaction, tenant, name, info.size_bytes());
  } else {
    auto asked = operations_->FindDevice(header.device());
    if (!asked.ok()) return asked.status();
    device = *asked;
  }
  device = scheduler_->HomeOf(info.size_bytes(), device);
  if (absl::Status status = core_->accounts->CheckArrayBytes(tenant, info.size_bytes());
      !status.ok())
    return status;
  auto array = MakePooled<session::Array>();
  array->info = info;
  array->create_time = core_->Now();
  array->expire_time = *expire;
  array->buffer = MakePooled<store::Buffer>(tenant, info.size_bytes(), core_->reclaimer);
  array->receiving = std::make_shared<session::Receiving>();
  array->receiving->device = device;
  array->buffer->SetIncoming(true);
  std::shared_ptr<Task> task = MakeReceiver(*array);
  if (absl::Status status =
          core_->catalogue.AddArray(transaction, tenant, name, array, core_->Now());
      !status.ok())
    return status;
  if (absl::Status status = scheduler_->Enqueue(transaction, task); !status.ok()) {
    core_->catalogue.RemoveArray(transaction, tenant, name, core_->Now()).IgnoreError();
    return status;
  }
  array->receiving->access = task;
  NoteReceiving(transaction, array);
  return array;
}

// Makes the task that other tasks wait for until every byte has arrived.
std::shared_ptr<Task> Arrays::MakeReceiver(const session::Array& array) {
  auto task = MakePooled<Task>();
  task->tenant = array.buffer->tenant;
  task->label = "upload";
  task->host_access = true;
  task->uses.push_back({.buffer = array.buffer, .write = true, .fresh = true});
  return task;
}

void Arrays::RestoreReceiving(GlobalTransaction& transaction, const ArrayPtr& array, int device,
                              const recovery::ReceivingRecord& record) {
  array->receiving = std::make_shared<session::Receiving>();
  array->receiving->device = device;
  array->buffer->SetIncoming(true);
  array->receiving->lease_end = core_->Now() + core_->options.upload_lease;
  // Ranges of bytes whose memory is gone never arrived.
  bool there = array->buffer->replicas.count(device) > 0;
  for (int i = 0; there && i < std::min(record.begin_size(), record.end_size()); ++i) {
    array->receiving->ranges.Add(record.begin(i), record.end(i));
  }
  std::shared_ptr<Task> task = MakeReceiver(*array);
  scheduler_->Restore(transaction, task);
  scheduler_->Resume(transaction, task);
  array->receiving->access = task;
  NoteReceiving(transaction, array);
}

absl::StatusOr<std::unique_ptr<Upload>> Arrays::BeginUpload(
    const TenantId& tenant, const v1::PutArrayRequest::Header& header, SteadyTime deadline) {
  auto name = session::MakeArrayName(header.parent(), header.array_id(), "parent", "array_id");
  if (!name.ok()) return name.status();
  auto info = CheckSpec(header.spec(), core_->options.max_array_bytes, "spec");
  if (!info.ok()) return info.status();
  int64_t begin = 0, end = info->size_bytes();
  if (header.has_range()) {
    begin = header.range().begin();
    end = header.range().end();
    if (begin < 0 || begin > end || end > info->size_bytes()) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "range",
                          absl::StrCat("a range lies within the array's bytes. Array: ",
                                       info->size_bytes(), ", range: [", begin, ", ", end, ")"));
    }
  }
  std::shared_ptr<Region> region;
  if (!header.region().empty()) {
    auto found = regions_->Find(tenant, header.region(), name->session, "region");
    if (!found.ok()) return found.status();
    region = *std::move(found);
  }
  ArrayPtr array;
  std::shared_ptr<session::Receiving> receiving;
  if (header.has_sharding() && !header.device().empty())
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "device", kNotBoth);
  {
    // A named array concerns more than its tenant; one that is spread, several devices.
    const bool plain = !name->session.empty() && !header.has_sharding();
    std::optional<TenantTransaction> of_tenant;
    std::optional<GlobalTransaction> of_all;
    TenantTransaction& transaction =
        plain ? of_tenant.emplace(*core_, tenant) : of_all.emplace(*core_);
    auto found = FindOrBeginReceiving(transaction, tenant, *name, header, *info);
    if (!found.ok()) return found.status();
    array = *found;
    receiving = array->receiving;
    if (receiving != nullptr && receiving->ranges.ranges().size() >= kMaxUploadRanges &&
        receiving->ranges.IsApart(begin, end)) {
      return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, "range",
                          absl::StrCat("the upload has too many ranges apart from each other; "
                                       "fill the gaps between them first. Limit: ",
                                       kMaxUploadRanges),
                          {{"limit", absl::StrCat(kMaxUploadRanges)}});
    }
    if (receiving != nullptr) {
      ++receiving->num_calls;
      receiving->lease_end = SteadyTime::InfiniteFuture();
    }
  }
  if (array->shards != nullptr) {
    return SharedByCopy(BeginShardedUpload(tenant, array, begin, end, deadline), std::move(region));
  }
  if (receiving == nullptr)
    return BeginOverwrite(tenant, array, *info, begin, end, deadline, std::move(region));
  auto upload = std::make_unique<ReceivingUpload>(core_, scheduler_, array, receiving, begin, end);
  upload->ShareRegion(std::move(region));
  if (absl::Status status = upload->Open(deadline); !status.ok()) return status;
  return upload;
}

absl::StatusOr<ArrayPtr> Arrays::MakeShardedReceiver(TenantTransaction& transaction,
                                                     const TenantId& tenant,
                                                     const session::ArrayName& name,
                                                     const v1::PutArrayRequest::Header& header,
                                                     const ArrayInfo& info, SteadyTime expire) {
  auto spread = operations_->ReadSharding(header.sharding(), info.shape.size(), "sharding");
  if (!spread.ok()) return spread.status();
  const size_t num_parts = spread->devices.size();
  const int64_t bytes =
      info.size_bytes() * (spread->replicated ? static_cast<int64_t>(num_parts) : 1);
  if (absl::Status status = core_->accounts->CheckArrayBytes(tenant, bytes); !status.ok())
    return status;
  // The upload fills the first part of a replicated array; the others are copies of it.
  const size_t num_receivers = spread->replicated ? 1 : num_parts;
  const auto begin = spread->replicated ? std::vector<int64_t>()
                                        : ops::SplitAxis(info.shape[spread->axis], num_parts);
  ArrayList parts;
  auto end_all = [&](const absl::Status& status) {
    for (const ArrayPtr& part : parts) {
      auto receiving = std::exchange(part->receiving, nullptr);
      if (receiving != nullptr && receiving->access != nullptr)
        scheduler_->Finish(transaction, std::static_pointer_cast<Task>(receiving->access), status);
    }
    return status;
  };
  for (size_t i = 0; i < num_parts; ++i) {
    if (i >= num_receivers) {
      auto copy = operations_->CopyTo(transaction, tenant, parts[0], spread->devices[i]);
      if (!copy.ok()) return end_all(copy.status());
      parts.push_back(*std::move(copy));
      continue;
    }
    auto part = MakePooled<session::Array>();
    part->info = info;
    if (!spread->replicated) {
      part->info =
          Contiguous(info.dtype, ops::PartShape(info.shape, spread->axis, begin[i + 1] - begin[i]));
    }
    part->create_time = core_->Now();
    part->buffer = MakePooled<store::Buffer>(tenant, part->info->size_bytes(), core_->reclaimer);
    part->receiving = std::make_shared<session::Receiving>();
    part->receiving->device = scheduler_->HomeOf(part->info->size_bytes(), spread->devices[i]);
    part->receiving->lease_end = core_->Now() + core_->options.upload_lease;
    part->buffer->SetIncoming(true);
    std::shared_ptr<Task> task = MakeReceiver(*part);
    parts.push_back(part);
    if (absl::Status status = scheduler_->Enqueue(transaction, task); !status.ok())
      return end_all(status);
    part->receiving->access = task;
    NoteReceiving(transaction, part);
  }
  ArrayPtr whole = WholeOf(info, *spread, parts);
  whole->expire_time = expire;
  if (absl::Status status = operations_->CheckKept(whole, name); !status.ok())
    return end_all(status);
  if (absl::Status status =
          core_->catalogue.AddArray(transaction, tenant, name, whole, core_->Now());
      !status.ok())
    return end_all(status);
  return whole;
}

absl::StatusOr<std::unique_ptr<Upload>> Arrays::BeginShardedUpload(const TenantId& tenant,
                                                                   const ArrayPtr& array,
                                                                   int64_t begin, int64_t end,
                                                                   SteadyTime deadline) {
  const session::Shards& shards = *array->shards;
  const PartRanges ranges(array->info, shards, begin, end);
  // The access to each part: an upload into an incomplete part, or a task that holds a complete
  // one.
  struct Opened {
    std::unique_ptr<ReceivingUpload> receiving;
    std::shared_ptr<Task> task;
    std::shared_ptr<absl::Notification> granted = std::make_shared<absl::Notification>();
  };
  std::vector<Opened> opened(shards.parts.size());
  absl::Status status;
  {
    GlobalTransaction transaction(*core_);
    const bool receives = IsReceiving(array);
    // All at once, so that two calls never wait for each other.
    for (size_t i = 0; i < shards.parts.size() && status.ok(); ++i) {
      const ArrayPtr& part = shards.parts[i];
      const auto [from, to] = ranges.ranges()[i];
      if (receives) {
        // The parts that this range leaves out have a call on them too, and keep their lease.
        if (part->receiving == nullptr) continue;
        ++part->receiving->num_calls;
        part->receiving->lease_end = SteadyTime::InfiniteFuture();
        opened[i].receiving =
            std::make_unique<ReceivingUpload>(core_, scheduler_, part, part->receiving, from, to);
        continue;
      }
      if (from == to) continue;
      if (!part->info->IsContiguous()) {
        status = InvalidField(
            v1::ERROR_REASON_WRONG_STATE, "array_id",
            "a view with gaps cannot be overwritten from the wire; copy into it instead");
        break;
      }
      auto task = MakePooled<Task>();
      task->tenant = tenant;
      task->label = "overwrite";
      task->host_access = true;
      task->uses.push_back({.buffer = part->buffer, .read = true, .write = true});
      NotifyOnce(*task, opened[i].granted);
      status = scheduler_->Enqueue(transaction, task);
      if (status.ok()) opened[i].task = std::move(task);
    }
    if (!status.ok()) {
      for (const Opened& one : opened) {
        if (one.task != nullptr) scheduler_->Cancel(transaction, one.task);
      }
    }
  }
  if (!status.ok()) return status;
  auto cancel = [&](absl::Status why) {
    TenantTransaction transaction(*core_, tenant);
    for (const Opened& one : opened) {
      if (one.task != nullptr) scheduler_->Cancel(transaction, one.task);
    }
    return why;
  };
  for (const Opened& one : opened) {
    if (one.task != nullptr && !stride::Await(*one.granted, deadline)) {
      return cancel(MakeError(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE,
                              "the deadline passed while earlier work used the array"));
    }
  }
  std::vector<std::unique_ptr<RangedUpload>> parts(opened.size());
  for (size_t i = 0; i < opened.size(); ++i) {
    const auto [from, to] = ranges.ranges()[i];
    if (opened[i].receiving != nullptr) {
      if (status.ok()) status = opened[i].receiving->Open(deadline);
      parts[i] = std::move(opened[i].receiving);
    } else if (opened[i].task != nullptr) {
      auto upload = std::make_unique<OverwriteUpload>(core_, scheduler_, shards.parts[i],
                                                      std::move(opened[i].task), from, to);
      if (status.ok()) status = upload->Open(deadline);
      parts[i] = std::move(upload);
    }
  }
  if (!status.ok()) return status;
  return std::make_unique<ShardedUpload>(core_, array, ranges, std::move(parts), begin, end);
}

absl::StatusOr<std::unique_ptr<Upload>> Arrays::BeginOverwrite(const TenantId& tenant,
                                                               ArrayPtr array,
                                                               const ArrayInfo& info, int64_t begin,
                                                               int64_t end, SteadyTime deadline,
                                                               std::shared_ptr<Region> region) {
  if (!array->info->IsContiguous()) {
    return InvalidField(
        v1::ERROR_REASON_WRONG_STATE, "array_id",
        "a view with gaps cannot be overwritten from the wire; copy into it instead");
  }
  auto task = MakePooled<Task>();
  task->tenant = tenant;
  task->label = "overwrite";
  task->host_access = true;
  task->uses.push_back({.buffer = array->buffer, .read = true, .write = true});
  auto granted = std::make_shared<absl::Notification>();
  NotifyOnce(*task, granted);
  {
    TenantTransaction transaction(*core_, tenant);
    if (absl::Status status = scheduler_->Enqueue(transaction, task); !status.ok()) return status;
  }
  if (!stride::Await(*granted, deadline)) {
    TenantTransaction transaction(*core_, tenant);
    scheduler_->Cancel(transaction, task);
    return MakeError(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE,
                     "the deadline passed while earlier work used the array");
  }
  auto upload = std::make_unique<OverwriteUpload>(core_, scheduler_, array, task, begin, end);
  upload->ShareRegion(std::move(region));
  if (absl::Status status = upload->Open(deadline); !status.ok()) return status;
  return upload;
}

absl::StatusOr<std::unique_ptr<Download>> Arrays::BeginDownload(
    const TenantId& tenant, const v1::FetchArrayRequest& request, SteadyTime deadline) {
  auto name = session::ParseArrayName(request.name(), "name");
  if (!name.ok()) return name.status();
  ArrayPtr array;
  {
    TenantTransaction transaction(*core_, tenant);
    auto found = core_->catalogue.FindArray(transaction, tenant, *name, core_->Now());
    if (!found.ok()) return found.status();
    array = *found;
    if (!array->status().ok()) return array->status();
  }
  int64_t begin = 0, end = array->info->size_bytes();
  if (request.has_range()) {
    begin = request.range().begin();
    end = request.range().end();
    if (begin < 0 || begin > end || end > array->info->size_bytes()) {
      return InvalidField(
          v1::ERROR_REASON_INVALID_FIELD, "range",
          absl::StrCat("a range lies within the array's bytes. Array: ", array->info->size_bytes(),
                       ", range: [", begin, ", ", end, ")"));
    }
  }
  if (request.region().empty()) return BeginDownload(tenant, array, begin, end, deadline);
  auto region = regions_->Find(tenant, request.region(), name->session, "region");
  if (!region.ok()) return region.status();
  if (!(*region)->Covers(request.region_offset(), end - begin)) {
    return InvalidField(
        v1::ERROR_REASON_INVALID_FIELD, "region_offset",
        absl::StrCat("the bytes do not fit into the region from there. Region: ", (*region)->size(),
                     ", offset: ", request.region_offset(), ", bytes: ", end - begin));
  }
  return BeginDownload(tenant, array, begin, end, deadline, *std::move(region),
                       request.region_offset());
}

absl::StatusOr<std::unique_ptr<Download>> Arrays::BeginDownload(const TenantId& tenant,
                                                                ArrayPtr array, int64_t begin,
                                                                int64_t end, SteadyTime deadline,
                                                                std::shared_ptr<Region> region,
                                                                int64_t region_offset) {
  if (array->shards != nullptr) {
    absl::StatusOr<std::shared_ptr<ShardedRead>> read = nullptr;
    {
      TenantTransaction transaction(*core_, tenant);
      read = ShardedRead::Enqueue(transaction, core_, scheduler_, operations_, tenant, array, begin,
                                  end);
    }
    if (!read.ok()) return read.status();
    if (absl::Status status = (*read)->Await(deadline); !status.ok()) return status;
    v1::Array description;
    {
      TenantTransaction transaction(*core_, tenant);
      description = Describe(*core_, *array);
    }
    return SharedByCopy((*read)->MakeDownload(std::move(description), deadline), std::move(region),
                        region_offset);
  }
  auto access = ReadAccess::Begin(core_, scheduler_, operations_, tenant, array, deadline);
  if (!access.ok()) return access.status();
  v1::Array description;
  {
    TenantTransaction transaction(*core_, tenant);
    description = Describe(*core_, *array);
  }
  return std::make_unique<ArrayDownload>(core_, scheduler_, *std::move(access),
                                         std::move(description), begin, end, deadline,
                                         std::move(region), region_offset);
}

absl::StatusOr<int64_t> Arrays::InlineSize(const session::Array& array) const {
  const bool there = array.buffer != nullptr || array.shards != nullptr;
  int64_t size = there ? array.info->size_bytes() : 0;
  if (size <= core_->options.max_inline_bytes) return size;
  return InvalidField(
      v1::ERROR_REASON_SIZE_LIMIT, "outputs",
      absl::StrCat("too large to travel inline; keep it under a handle and use FetchArray. Bytes: ",
                   size, ", limit: ", core_->options.max_inline_bytes));
}

std::optional<v1::InlineArray> Arrays::ReadAtOnce(TenantTransaction& transaction,
                                                  const TenantId& tenant,
                                                  const session::Array& array) {
  if (array.shards != nullptr || array.buffer == nullptr || !array.status().ok() ||
      array.receiving != nullptr || array.buffer->writer != nullptr || array.buffer->loading ||
      array.buffer->num_holders > 0 || scheduler_->IsMoving(transaction, array.buffer.get()) ||
      !array.info->IsContiguous()) {
    return std::nullopt;
  }
  const int64_t size = array.info->size_bytes();
  if (size > std::min<int64_t>(kMostReadAtOnce, core_->options.max_inline_bytes))
    return std::nullopt;
  for (const auto& [place, replica] : array.buffer->replicas) {
    if (!core_->IsDevice(place) || !replica.mapped()) continue;
    v1::InlineArray out = Empty(array.info);
    const char* bytes = reinterpret_cast<const char*>(replica.data()) + array.info->offset;
    out.mutable_data()->assign(bytes, size);
    scheduler_->account(place).download_bytes += size;
    core_->accounts->AddDownload(tenant, size);
    return out;
  }
  return std::nullopt;
}

absl::StatusOr<v1::InlineArray> Arrays::ReadForBody(const TenantId& tenant, ArrayPtr array) {
  const int64_t size = array->info->size_bytes();
  absl::StatusOr<std::shared_ptr<ReadAccess>> access = nullptr;
  {
    TenantTransaction transaction(*core_, tenant);
    access =
        ReadAccess::Enqueue(transaction, core_, scheduler_, operations_, tenant, std::move(array),
                            /*of_body=*/true);
  }
  if (!access.ok()) return access.status();
  absl::Status there = (*access)->Await(SteadyTime::InfiniteFuture());
  if (!there.ok()) return there;
  ArrayDownload download(core_, scheduler_, *access, {}, 0, size, SteadyTime::InfiniteFuture());
  return ReadWhole((*access)->array().info, download);
}

absl::StatusOr<v1::InlineArray> Arrays::ReadInline(const TenantId& tenant, ArrayPtr array,
                                                   SteadyTime deadline) {
  auto size = InlineSize(*array);
  if (!size.ok()) return size.status();
  auto download = BeginDownload(tenant, array, 0, *size, deadline);
  if (!download.ok()) return download.status();
  auto out = ReadWhole(array->info, **download);
  if (out.ok()) core_->accounts->AddDownload(tenant, *size);
  return out;
}

namespace {

class TakenFetch : public InlineFetch {
 public:
  TakenFetch(Core* core, Scheduler* scheduler, TenantId tenant, std::shared_ptr<ReadAccess> access,
             int64_t size)
      : core_(core),
        scheduler_(scheduler),
        tenant_(std::move(tenant)),
        access_(std::move(access)),
        size_(size) {}

  absl::StatusOr<v1::InlineArray> Read(SteadyTime deadline) override {
    if (absl::Status status = access_->Await(deadline); !status.ok()) return status;
    ArrayDownload download(core_, scheduler_, access_, {}, 0, size_, deadline);
    auto out = ReadWhole(access_->array().info, download);
    if (out.ok()) core_->accounts->AddDownload(tenant_, size_);
    return out;
  }

 private:
  Core* const core_;
  Scheduler* const scheduler_;
  const TenantId tenant_;
  const std::shared_ptr<ReadAccess> access_;
  const int64_t size_;
};

class TakenShardedFetch : public InlineFetch {
 public:
  TakenShardedFetch(Core* core, TenantId tenant, std::shared_ptr<ShardedRead> read, int64_t size)
      : core_(core), tenant_(std::move(tenant)), read_(std::move(read)), size_(size) {}

  absl::StatusOr<v1::InlineArray> Read(SteadyTime deadline) override {
    if (absl::Status status = read_->Await(deadline); !status.ok()) return status;
    auto out = ReadWhole(read_->array().info, *read_->MakeDownload({}, deadline));
    if (out.ok()) core_->accounts->AddDownload(tenant_, size_);
    return out;
  }

 private:
  Core* const core_;
  const TenantId tenant_;
  const std::shared_ptr<ShardedRead> read_;
  const int64_t size_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<InlineFetch>> Arrays::BeginFetch(const TenantId& tenant,
                                                                const std::string& session,
                                                                uint64_t handle) {
  auto id = session::ParseSessionName(session, "session");
  if (!id.ok()) return id.status();
  const session::ArrayName name{.session = *id, .handle = handle};
  TenantTransaction transaction(*core_, tenant);
  auto array = core_->catalogue.FindArray(transaction, tenant, name, core_->Now());
  if (!array.ok()) return array.status();
  if (!(*array)->status().ok()) return (*array)->status();
  auto size = InlineSize(**array);
  if (!size.ok()) return size.status();
  if ((*array)->shards != nullptr) {
    auto read =
        ShardedRead::Enqueue(transaction, core_, scheduler_, operations_, tenant, *array, 0, *size);
    if (!read.ok()) return read.status();
    return std::make_unique<TakenShardedFetch>(core_, tenant, *std::move(read), *size);
  }
  auto access = ReadAccess::Enqueue(transaction, core_, scheduler_, operations_, tenant, *array);
  if (!access.ok()) return access.status();
  return std::make_unique<TakenFetch>(core_, scheduler_, tenant, *std::move(access), *size);
}

void Arrays::NoteReceiving(TenantTransaction& transaction, const ArrayPtr& array) {
  array->receiving->CountFor(*core_->accounts->ControlOf(array->buffer->tenant));
  receiving_.Of(transaction, array->buffer->tenant).push_back({array, array->receiving});
}

void Arrays::EndLeases(GlobalTransaction& transaction, SteadyTime now) {
  for (auto& receiving : receiving_.All(transaction)) EndLeases(transaction, receiving, now);
}

void Arrays::EndLeases(GlobalTransaction& transaction, std::vector<Incoming>& receiving,
                       SteadyTime now) {
  for (Incoming& incoming : receiving) {
    auto task = std::static_pointer_cast<Task>(incoming.receiving->access);
    ArrayPtr array = incoming.array.lock();
    if (array == nullptr) {
      // No call can continue the upload, and tasks may wait for its bytes. No effect if the upload
      // was complete.
      scheduler_->Finish(
          transaction, task,
          MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_ARRAY_NOT_READY,
                    "the array was released before its upload was complete"));
      incoming.receiving = nullptr;
      continue;
    }
    if (array->receiving == nullptr) {
      incoming.receiving = nullptr;
      continue;
    }
    if (array->receiving->num_calls > 0 || array->receiving->lease_end > now) continue;
    array->receiving = nullptr;
    scheduler_->Finish(
        transaction, task,
        MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_ARRAY_NOT_READY,
                  "the upload was left incomplete and its lease has ended; put the array again"));
    array->buffer->KeepOnly(-1);  // the partial bytes
    core_->recorder->Changed(transaction, array);
    incoming.receiving = nullptr;
  }
  std::erase_if(receiving, [](const Incoming& incoming) { return incoming.receiving == nullptr; });
}

}  // namespace stride::scheduler
