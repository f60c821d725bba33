#include "server/engine/arrays/exports.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/base/error.h"
#include "server/base/memory_file.h"
#include "server/base/random_id.h"
#include "server/base/system_error.h"
#include "server/engine/arrays/arrays.h"
#include "server/engine/persistence/describe.h"
#include "server/engine/transfers/host_access.h"
#include "server/session/resource_name.h"

namespace stride::engine {
namespace {

using ArrayPtr = std::shared_ptr<session::Array>;

constexpr char kPrefix[] = "exports/";
constexpr absl::Duration kExportRetryDelay = absl::Seconds(1);
constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR;

absl::Status WrongState(std::string_view text) {
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_WRONG_STATE, text);
}

// The descriptor for the client. A descriptor for reading alone cannot be opened again for more by
// another user. Memory of a GPU has one kind: what its importer may do is its own choice there.
absl::StatusOr<std::shared_ptr<const UniqueFd>> DescriptorFor(const store::Arena& arena,
                                                              bool writable) {
  UniqueFd fd;
  if (writable || arena.map.data() == nullptr) {
    fd.Reset(fcntl(arena.fd.get(), F_DUPFD_CLOEXEC, 0));
    if (!fd.valid()) return SystemError(errno, "exporting memory");
  } else {
    if (fchmod(arena.fd.get(), kOwnerOnly) != 0) return SystemError(errno, "exporting memory");
    auto reopened = ReopenForReading(arena.fd.get());
    if (!reopened.ok()) return reopened.status();
    fd = *std::move(reopened);
  }
  return std::make_shared<const UniqueFd>(std::move(fd));
}

}  // namespace

bool Exports::IsName(std::string_view name) { return name.starts_with(kPrefix); }

absl::StatusOr<ArrayPtr> Exports::Find(TenantTransaction& transaction, const TenantId& tenant,
                                       const session::ArrayName& name, bool hand_over) {
  auto found = core_->catalogue.FindArray(transaction, tenant, name, core_->Now());
  if (!found.ok()) return found.status();
  const session::Array& array = **found;
  if (!array.status().ok()) return array.status();
  if (array.shards != nullptr) {
    return WrongState(
        "the array is spread over several devices and has no memory that is one piece; gather it "
        "on one device first");
  }
  if (array.info->size_bytes() == 0) return WrongState("an array without elements has no memory");
  if (hand_over && array.buffer->num_loans > 0)
    return WrongState("the array's memory is mapped already; close the mapping first");
  return *found;
}

// Where it lies, else where its session works.
int Exports::DeviceFor(TenantTransaction& transaction, const TenantId& tenant,
                       const session::ArrayName& name, const store::Buffer& buffer) {
  for (const auto& [place, block] : buffer.replicas) {
    if (core_->IsDevice(place)) return place;
  }
  if (!name.session.empty()) {
    auto session = core_->catalogue.FindSession(transaction, tenant, name.session, core_->Now());
    if (session.ok() && (*session)->home_device >= 0) return (*session)->home_device;
  }
  for (int device = 0; device < core_->memory_place(); ++device) {
    if (scheduler_->health().Serves(device)) return device;
  }
  return 0;
}

absl::Status Exports::Take(const TenantId& tenant, int device, int64_t exports, int64_t bytes) {
  const auto limit = static_cast<double>(scheduler_->memory().arenas().limit_bytes(device));
  const auto most = static_cast<int64_t>(limit * kMaxShare);
  const auto most_of_tenant = static_cast<int64_t>(limit * kMaxShareOfTenant);
  auto found = tenants_.find(tenant);
  const Use mine = found == tenants_.end() ? Use() : found->second;
  auto used = [device](const Use& use) {
    auto bytes = use.bytes.find(device);
    return bytes == use.bytes.end() ? 0 : bytes->second;
  };
  if (mine.exports + exports > kMaxExportsOfTenant) {
    return QuotaExceeded(v1::ERROR_REASON_QUOTA, tenant.value,
                         "the tenant has too many arrays mapped; close some mappings",
                         {.quota = "mapped-arrays",
                          .limit = kMaxExportsOfTenant,
                          .used = mine.exports,
                          .asked = exports},
                         kExportRetryDelay);
  }
  if (used(mine) + bytes > most_of_tenant) {
    return QuotaExceeded(
        v1::ERROR_REASON_QUOTA, tenant.value,
        "the tenant's mapped arrays would take more than half of the device's "
        "memory; close some mappings, or copy",
        {.quota = "mapped-bytes", .limit = most_of_tenant, .used = used(mine), .asked = bytes},
        kExportRetryDelay);
  }
  if (all_.exports + exports > kMaxExports || used(all_) + bytes > most) {
    return TryLater(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_QUOTA,
                    "the mapped arrays of all tenants would take too much; copy, or try again",
                    kExportRetryDelay);
  }
  for (Use* use : {&tenants_[tenant], &all_}) {
    use->exports += exports;
    use->bytes[device] += bytes;
  }
  return absl::OkStatus();
}

void Exports::Return(const TenantId& tenant, int device, int64_t exports, int64_t bytes) {
  auto mine = tenants_.find(tenant);
  for (Use* use : {&mine->second, &all_}) {
    use->exports -= exports;
    use->bytes[device] -= bytes;
  }
  if (mine->second.exports == 0) tenants_.erase(mine);
}

absl::StatusOr<PinnedMemory> Exports::Map(const TenantId& tenant,
                                          const v1::MapArrayRequest& request, SteadyTime deadline,
                                          v1::MapArrayResponse* response) {
  auto name = session::ParseArrayName(request.name(), "name");
  if (!name.ok()) return name.status();
  const bool hand_over = request.hand_over();
  if (hand_over && name->session.empty()) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "hand_over",
                        "only a session's array can leave the service; map a named one for "
                        "reading, or hand over a copy");
  }
  const auto& free_descriptors = core_->options.free_descriptors;
  if (free_descriptors && free_descriptors() <= core_->options.descriptor_reserve) {
    return TryLater(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_QUOTA,
                    "the service has no file descriptors left for a mapping", kExportRetryDelay,
                    {{"resource", "file descriptors"}});
  }
  ArrayPtr array;
  int device = 0;
  int64_t reserved = 0;  // bytes of the device that no loan counts yet
  {
    TenantTransaction transaction(*core_, tenant);
    auto found = Find(transaction, tenant, *name, hand_over);
    if (!found.ok()) return found.status();
    array = *std::move(found);
    device = DeviceFor(transaction, tenant, *name, *array->buffer);
    if (array->buffer->num_loans == 0) reserved = array->buffer->size;
    absl::MutexLock mine(&mutex_);
    if (absl::Status status = Take(tenant, device, 1, reserved); !status.ok()) return status;
  }
  auto task = HostTask(tenant, "map", {.buffer = array->buffer, .read = true, .write = true});
  task->options.drop_other_replicas = true;  // a move: the content stays as it is
  HostAccess access(core_, scheduler_, std::move(task));
  absl::StatusOr<std::shared_ptr<const UniqueFd>> fd = nullptr;
  absl::StatusOr<store::Allocation> block = store::Allocation();
  absl::Status status;
  {
    TenantTransaction transaction(*core_, tenant);
    status = access.Enqueue(transaction);
  }
  if (status.ok()) status = access.Await(deadline, kInUse, array.get());
  if (status.ok()) {
    block = lent_blocks_.PutAlone(array->buffer, device, deadline);
    status = block.status();
  }
  if (status.ok()) {
    fd = DescriptorFor(*block->arena, hand_over);
    status = fd.status();
  }
  GlobalTransaction transaction(*core_);
  absl::MutexLock mine(&mutex_);
  absl::StatusOr<std::string> lent = status.ok() ? Lend(transaction, tenant, *name, array, *block,
                                                        device, hand_over, &reserved, response)
                                                 : absl::StatusOr<std::string>(status);
  Return(tenant, device, lent.ok() ? 0 : 1, reserved);
  access.End(transaction);
  if (!lent.ok()) return lent.status();
  const int number = (*fd)->get();
  return PinnedMemory{*std::move(fd), number, *std::move(lent)};
}

absl::StatusOr<std::string> Exports::Lend(TenantTransaction& transaction, const TenantId& tenant,
                                          const session::ArrayName& name, const ArrayPtr& array,
                                          const store::Allocation& block, int device,
                                          bool hand_over, int64_t* reserved,
                                          v1::MapArrayResponse* response) {
  auto found = Find(transaction, tenant, name, hand_over);
  if (!found.ok()) return found.status();
  store::Buffer& buffer = *array->buffer;
  auto here = buffer.replicas.find(device);
  // Its handle may stand for another by now.
  if (*found != array || here == buffer.replicas.end() || here->second.arena != block.arena)
    return WrongState("the array was replaced while it was being mapped; try again");
  if (hand_over) {
    constexpr int kOurs = 2;  // the array's, and the access's
    if (array->buffer.use_count() > kOurs) {
      return WrongState(
          "other arrays share the array's memory, or work that uses it has not ended: release "
          "them, or map a copy");
    }
  }
  store::Arena& arena = *block.arena;
  auto loan = loans_.find(arena.id);
  if (loan == loans_.end()) {
    if (*reserved == 0) {
      if (absl::Status status = Take(tenant, device, 0, buffer.size); !status.ok()) return status;
    }
    *reserved = 0;
    loan = loans_.emplace(arena.id, Loan{tenant, device, array->buffer, block}).first;
    arena.lent = true;
    ++arena.num_loans;
    ++buffer.num_loans;
    ++buffer.pin_count;
  }
  ++loan->second.num_exports;
  if (hand_over) {
    auto removed = core_->catalogue.RemoveArray(transaction, tenant, name, core_->Now());
    removed.IgnoreError();  // Find has just found it
  }

  response->set_device(absl::StrCat("devices/", core_->MemorySpace(device).id()));
  response->set_device_kind(core_->MemorySpace(device).kind());
  response->set_memory_bytes(static_cast<int64_t>(arena.size));
  response->set_offset(static_cast<int64_t>(block.offset) + array->info->offset);
  for (int64_t stride : array->info->strides) response->add_strides(stride);
  std::string export_name = absl::StrCat(kPrefix, RandomId(26));
  exports_[export_name] = {tenant, arena.id};
  return export_name;
}

void Exports::Release(const std::string& name, std::shared_ptr<const void> end) {
  core_->executor.Run([this, name, end = std::move(end)] {
    GlobalTransaction transaction(*core_);
    std::map<std::string, Export, std::less<>>::node_type ended;
    {
      absl::MutexLock mine(&mutex_);
      ended = exports_.extract(name);
    }
    if (!ended.empty()) End(transaction, ended.mapped());
  });
}

void Exports::End(GlobalTransaction& transaction, const Export& ended) {
  Loan loan;
  {
    absl::MutexLock mine(&mutex_);
    auto found = loans_.find(ended.arena);
    const bool last = --found->second.num_exports == 0;
    Return(ended.tenant, found->second.device, 1, last ? found->second.buffer->size : 0);
    if (!last) return;
    loan = std::move(found->second);
    loans_.erase(found);
  }
  --loan.block.arena->num_loans;
  --loan.buffer->num_loans;
  scheduler_->memory().Unpin(transaction, *loan.buffer);
  loan.buffer.reset();
  // The memory of one that was handed over, or whose array has gone, is free from now on.
  loan.block = {};
  scheduler_->memory().arenas().Reclaim(transaction);
  scheduler_->memory().arenas().Trim(
      transaction, scheduler_->queues().Get(transaction, loan.tenant, loan.device), UINT64_MAX);
}

}  // namespace stride::engine
