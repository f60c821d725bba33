#include "server/engine/transfers/regions.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/random_id.h"
#include "server/session/resource_name.h"

namespace stride::engine {
namespace {

constexpr absl::Duration kRetryDelay = absl::Seconds(1);
// Small enough that sums of sizes cannot overflow.
constexpr int64_t kMaxRegionBytes = int64_t{1} << 46;

absl::StatusOr<int64_t> WholePages(int64_t size) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  if (size <= 0) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "size_bytes",
                        absl::StrCat("must be above 0, not ", size));
  }
  if (size > kMaxRegionBytes) {
    return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, "size_bytes",
                        absl::StrCat("too large for a region; the limit is ", kMaxRegionBytes),
                        {{"limit", std::to_string(kMaxRegionBytes)}});
  }
  return (size + page - 1) / page * page;
}

absl::Status NoSuchRegion(std::string_view name) {
  return NotFound(v1::ERROR_REASON_INVALID_FIELD, "region", name);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const void>> Regions::TakePlace(const TenantId& tenant,
                                                               int64_t bytes) {
  const int64_t most = core_->accounts->QuotaOf(tenant).region_bytes.value_or(INT64_MAX);
  absl::MutexLock lock(&books_->mutex);
  Books::Use& mine = books_->tenants[tenant];
  Books::Use& all = books_->all;
  absl::Status status;
  if (bytes > most - std::min(most, mine.bytes)) {
    status = QuotaExceeded(
        v1::ERROR_REASON_QUOTA, tenant.value, "the tenant's regions would take too many bytes",
        {.quota = "region-bytes", .limit = most, .used = mine.bytes, .asked = bytes}, kRetryDelay);
  } else if (mine.regions >= kMaxRegionsOfTenant) {
    status = QuotaExceeded(
        v1::ERROR_REASON_QUOTA, tenant.value, "the tenant has too many regions",
        {.quota = "regions", .limit = kMaxRegionsOfTenant, .used = mine.regions, .asked = 1},
        kRetryDelay);
  } else if (bytes > core_->options.region_bytes - all.bytes || all.regions >= kMaxRegions) {
    status = TryLater(
        absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_QUOTA,
        absl::StrCat("regions of all tenants would take too much (--region-bytes). Limit: ",
                     core_->options.region_bytes, ", asked for: ", bytes),
        kRetryDelay);
  }
  if (!status.ok()) {
    if (mine.regions == 0) books_->tenants.erase(tenant);
    return status;
  }
  for (Books::Use* use : {&mine, &all}) {
    use->bytes += bytes;
    ++use->regions;
  }
  return std::shared_ptr<const void>(this, [books = books_, tenant, bytes](const void*) {
    absl::MutexLock lock(&books->mutex);
    auto mine = books->tenants.find(tenant);
    for (Books::Use* use : {&mine->second, &books->all}) {
      use->bytes -= bytes;
      --use->regions;
    }
    if (mine->second.regions == 0) books->tenants.erase(mine);
  });
}

Regions::~Regions() {
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, over] : pinned_) regions_.at(name)->LeavePages();
}

absl::Status Regions::CheckSession(const TenantId& tenant, const std::string& id) {
  TenantTransaction transaction(*core_, tenant);
  return core_->catalogue.FindSession(transaction, tenant, id, core_->Now()).status();
}

absl::StatusOr<PinnedMemory> Regions::Create(const TenantId& tenant,
                                             const v1::CreateRegionRequest& request,
                                             v1::CreateRegionResponse* response) {
  if (core_->options.region_bytes == 0) {
    return NotImplemented("regions",
                          "this daemon shares no memory with its clients (--region-bytes is 0)");
  }
  auto session = session::ParseSessionName(request.parent(), "parent");
  if (!session.ok()) return session.status();
  auto size = WholePages(request.size_bytes());
  if (!size.ok()) return size.status();
  if (absl::Status status = CheckSession(tenant, *session); !status.ok()) return status;
  auto place = TakePlace(tenant, *size);
  if (!place.ok()) return place.status();
  auto memory = store::SharedSegment::Create(*size);
  if (!memory.ok()) return memory.status();

  const std::string name = absl::StrCat("sessions/", *session, "/regions/", RandomId(26));
  response->mutable_region()->set_name(name);
  response->mutable_region()->set_size_bytes(*size);
  std::shared_ptr<Region> region;  // if the session has ended, released after the locks
  TenantTransaction transaction(*core_, tenant);
  auto still = core_->catalogue.FindSession(transaction, tenant, *session, core_->Now());
  absl::MutexLock mine(&mutex_);
  region = std::make_shared<Region>(++last_id_, name, tenant, *session, *std::move(memory),
                                    *std::move(place));
  if (!still.ok()) return still.status();
  regions_[name] = region;
  pinned_[name] = false;
  return PinnedMemory{region, region->fd(), name};
}

absl::StatusOr<std::shared_ptr<Region>> Regions::Find(const TenantId& tenant,
                                                      const std::string& name,
                                                      const std::string& session,
                                                      std::string_view field) {
  if (absl::Status status = session::CheckRegionName(name, field); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  auto it = regions_.find(name);
  if (it == regions_.end() || it->second->tenant() != tenant ||
      (!session.empty() && it->second->session() != session))
    return NoSuchRegion(name);
  return it->second;
}

absl::Status Regions::Delete(const TenantId& tenant, const std::string& name) {
  // Keeps the region until the lock is released: its destructor blocks.
  auto region = Find(tenant, name, "", "name");
  if (!region.ok()) return region.status();
  absl::MutexLock lock(&mutex_);
  pinned_.erase(name);
  return regions_.erase(name) > 0 ? absl::OkStatus() : NoSuchRegion(name);
}

void Regions::Removed(GlobalTransaction& transaction, session::Session& session) {
  absl::MutexLock lock(&mutex_);
  const std::string prefix = absl::StrCat("sessions/", session.id, "/");
  for (auto it = regions_.lower_bound(prefix);
       it != regions_.end() && it->first.compare(0, prefix.size(), prefix) == 0;) {
    const bool mine = it->second->tenant() == session.tenant;
    auto pinned = pinned_.find(it->first);
    if (mine && pinned != pinned_.end()) pinned->second = true;
    if (!mine || pinned != pinned_.end()) {
      ++it;
      continue;
    }
    DropLater(std::move(it->second));
    it = regions_.erase(it);
  }
}

void Regions::Release(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  auto pinned = pinned_.find(name);
  if (pinned == pinned_.end()) return;
  const bool over = pinned->second;
  pinned_.erase(pinned);
  if (!over) return;
  auto region = regions_.find(name);
  DropLater(std::move(region->second));
  regions_.erase(region);
}

void Regions::DropLater(std::shared_ptr<Region> region) {
  core_->starter.Run([region = std::move(region)]() mutable { region.reset(); });
}

int64_t Regions::bytes() const {
  absl::MutexLock lock(&books_->mutex);
  return books_->all.bytes;
}

int64_t Regions::bytes(const TenantId& tenant) const {
  absl::MutexLock lock(&books_->mutex);
  auto found = books_->tenants.find(tenant);
  return found == books_->tenants.end() ? 0 : found->second.bytes;
}

}  // namespace stride::engine
