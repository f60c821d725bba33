#include "server/session/tenant_accounts.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/session/array_description.h"

namespace stride::session {
namespace {

constexpr absl::Duration kRetryDelay = absl::Seconds(1);
// Seconds of uploads that a tenant may send at full speed before its rate counts. A smaller burst
// would delay every small array.
constexpr double kBurstSeconds = 1;

absl::Status Check(const TenantId& tenant, std::string_view quota, std::string_view text,
                   const std::optional<int64_t>& limit, int64_t used, int64_t asked) {
  if (!limit.has_value() || asked == 0 || (asked <= *limit && used <= *limit - asked))
    return absl::OkStatus();
  return QuotaExceeded(v1::ERROR_REASON_QUOTA, tenant.value, text,
                       {.quota = quota, .limit = *limit, .used = used, .asked = asked},
                       kRetryDelay);
}

// One limit of the quota in force for a tenant.
std::optional<int64_t> LimitOf(const std::map<TenantId, identity::Quota>& quotas,
                               const identity::Quota& others, const identity::Quota& defaults,
                               const TenantId& tenant,
                               std::optional<int64_t> identity::Quota::*member) {
  auto own = quotas.find(tenant);
  const identity::Quota& quota = own == quotas.end() ? others : own->second;
  return (quota.*member).has_value() ? quota.*member : defaults.*member;
}

void AddQuota(std::string_view name, int64_t used, const std::optional<int64_t>& limit,
              v1::Usage* usage) {
  v1::QuotaUsage* quota = usage->add_quotas();
  quota->set_name(std::string(name));
  quota->set_used(used);
  if (limit.has_value()) quota->set_limit(*limit);
}

}  // namespace

void TenantAccounts::SetQuotas(const std::map<TenantId, identity::Quota>& quotas,
                               const identity::Quota& others) {
  auto has_rate = [](const auto& entry) {
    return entry.second.upload_bytes_per_second.has_value();
  };
  any_rate_ = others.upload_bytes_per_second.has_value() ||
              defaults_.upload_bytes_per_second.has_value() ||
              std::any_of(quotas.begin(), quotas.end(), has_rate);
  const auto now = std::make_shared<const Quotas>(Quotas{quotas, others});
  for (Part& part : parts_) {
    absl::MutexLock lock(&part.mutex);
    part.quotas = now;
    for (auto& [tenant, account] : part.accounts)
      account.control->set_limit(ControlLimit(*now, tenant));
  }
}

int64_t TenantAccounts::ControlLimit(const Quotas& quotas, const TenantId& tenant) const {
  return LimitOf(quotas.own, quotas.others, defaults_, tenant, &identity::Quota::control_bytes)
      .value_or(INT64_MAX);
}

std::shared_ptr<ControlAccount> TenantAccounts::ControlOf(const TenantId& tenant) const {
  Part& part = PartOf(tenant);
  absl::MutexLock lock(&part.mutex);
  return AccountOf(part, tenant).control;
}

identity::Quota TenantAccounts::QuotaOf(const TenantId& tenant) const {
  Part& part = PartOf(tenant);
  absl::MutexLock lock(&part.mutex);
  return Effective(part, tenant);
}

int64_t TenantAccounts::MaxOperations(const TenantId& tenant) const {
  Part& part = PartOf(tenant);
  absl::MutexLock lock(&part.mutex);
  return *LimitOf(part.quotas->own, part.quotas->others, defaults_, tenant,
                  &identity::Quota::operations);
}

TenantAccounts::Account& TenantAccounts::AccountOf(Part& part, const TenantId& tenant) const {
  if (part.latest == nullptr || part.latest->first != tenant) {
    auto [it, is_new] = part.accounts.try_emplace(tenant);
    if (is_new) {
      it->second.control =
          std::make_shared<ControlAccount>(tenant, ControlLimit(*part.quotas, tenant), room_);
    }
    part.latest = &*it;
  }
  return part.latest->second;
}

identity::Quota TenantAccounts::Effective(const Part& part, const TenantId& tenant) const {
  auto it = part.quotas->own.find(tenant);
  identity::Quota quota = it == part.quotas->own.end() ? part.quotas->others : it->second;
  for (auto member :
       {&identity::Quota::array_bytes, &identity::Quota::inline_bytes,
        &identity::Quota::control_bytes, &identity::Quota::operations, &identity::Quota::jobs,
        &identity::Quota::sessions, &identity::Quota::functions, &identity::Quota::modules,
        &identity::Quota::programs, &identity::Quota::upload_bytes_per_second,
        &identity::Quota::region_bytes}) {
    if (!(quota.*member).has_value()) quota.*member = defaults_.*member;
  }
  return quota;
}

absl::Status TenantAccounts::CheckArrayBytes(const TenantId& tenant, int64_t bytes) const {
  Part& part = PartOf(tenant);
  absl::MutexLock lock(&part.mutex);
  const std::optional<int64_t> limit = LimitOf(part.quotas->own, part.quotas->others, defaults_,
                                               tenant, &identity::Quota::array_bytes);
  if (!limit.has_value()) return absl::OkStatus();
  return Check(tenant, "array-bytes", "the tenant's arrays would take too many bytes", limit,
               AccountOf(part, tenant).array_bytes, bytes);
}

absl::Status TenantAccounts::CheckInlineBytes(const TenantId& tenant, int64_t bytes) const {
  Part& part = PartOf(tenant);
  absl::MutexLock lock(&part.mutex);
  return Check(tenant, "inline-bytes", "too many bytes of inline arrays are waiting to be used",
               Effective(part, tenant).inline_bytes, AccountOf(part, tenant).inline_bytes, bytes);
}

void TenantAccounts::SumArrayTime(Account& account, SteadyTime now) {
  if (account.array_bytes > 0) {
    account.array_byte_seconds += static_cast<double>(account.array_bytes) *
                                  std::max(0.0, absl::ToDoubleSeconds(now - account.array_time));
  }
  account.array_time = now;
}

void TenantAccounts::AddArrayBytes(const TenantId& tenant, int64_t bytes, int64_t control_bytes) {
  Part& part = PartOf(tenant);
  absl::MutexLock lock(&part.mutex);
  Account& account = AccountOf(part, tenant);
  SumArrayTime(account, Now());
  account.array_bytes += bytes;
  account.control->Add(control_bytes);
}

std::shared_ptr<const void> TenantAccounts::HoldInlineBytes(const TenantId& tenant, int64_t bytes) {
  {
    Part& part = PartOf(tenant);
    absl::MutexLock lock(&part.mutex);
    AccountOf(part, tenant).inline_bytes += bytes;
  }
  // The accounts live until the last of these references is released.
  return std::shared_ptr<const void>(this, [self = shared_from_this(), tenant, bytes](const void*) {
    Part& part = self->PartOf(tenant);
    absl::MutexLock lock(&part.mutex);
    self->AccountOf(part, tenant).inline_bytes -= bytes;
  });
}

absl::StatusOr<std::shared_ptr<const void>> TenantAccounts::EnterJob(const TenantId& tenant) {
  {
    Part& part = PartOf(tenant);
    absl::MutexLock lock(&part.mutex);
    Account& account = AccountOf(part, tenant);
    absl::Status status = Check(tenant, "jobs", "too many jobs have not ended",
                                Effective(part, tenant).jobs, account.live_jobs, 1);
    if (!status.ok()) return status;
    ++account.live_jobs;
  }
  return JobPlace(tenant);
}

std::shared_ptr<const void> TenantAccounts::RestoreJob(const TenantId& tenant) {
  Part& part = PartOf(tenant);
  absl::MutexLock lock(&part.mutex);
  ++AccountOf(part, tenant).live_jobs;
  return JobPlace(tenant);
}

std::shared_ptr<const void> TenantAccounts::JobPlace(const TenantId& tenant) {
  return std::shared_ptr<const void>(this, [self = shared_from_this(), tenant](const void*) {
    Part& part = self->PartOf(tenant);
    absl::MutexLock lock(&part.mutex);
    --self->AccountOf(part, tenant).live_jobs;
  });
}

void TenantAccounts::AddJob(const TenantId& tenant) {
  Part& part = PartOf(tenant);
  absl::MutexLock lock(&part.mutex);
  ++AccountOf(part, tenant).jobs;
}

int64_t TenantAccounts::live_jobs(const TenantId& tenant) const {
  Part& part = PartOf(tenant);
  absl::MutexLock lock(&part.mutex);
  return AccountOf(part, tenant).live_jobs;
}

double TenantAccounts::Debt(const Account& account, double rate, SteadyTime now) {
  double earned = rate * std::max(0.0, absl::ToDoubleSeconds(now - account.debt_time));
  return std::max(-rate * kBurstSeconds, account.debt - earned);
}

absl::Duration TenantAccounts::AddUpload(const TenantId& tenant, int64_t bytes) {
  Part& part = PartOf(tenant);
  absl::MutexLock lock(&part.mutex);
  Account& account = AccountOf(part, tenant);
  account.uploaded += bytes;
  std::optional<int64_t> limit = Effective(part, tenant).upload_bytes_per_second;
  if (!limit.has_value()) return absl::ZeroDuration();
  double rate = static_cast<double>(*limit);
  SteadyTime now = Now();
  account.debt = Debt(account, rate, now) + static_cast<double>(bytes);
  account.debt_time = now;
  return absl::Seconds(std::max(0.0, account.debt / rate));
}

absl::Duration TenantAccounts::UploadDelay(const TenantId& tenant) const {
  if (!any_rate_.load(std::memory_order_relaxed)) return absl::ZeroDuration();
  Part& part = PartOf(tenant);
  absl::MutexLock lock(&part.mutex);
  std::optional<int64_t> limit = Effective(part, tenant).upload_bytes_per_second;
  if (!limit.has_value()) return absl::ZeroDuration();
  double rate = static_cast<double>(*limit);
  return absl::Seconds(std::max(0.0, Debt(AccountOf(part, tenant), rate, Now()) / rate));
}

void TenantAccounts::AddDownload(const TenantId& tenant, int64_t bytes) {
  Part& part = PartOf(tenant);
  absl::MutexLock lock(&part.mutex);
  AccountOf(part, tenant).downloaded += bytes;
}

void TenantAccounts::AddDeviceTime(const TenantId& tenant, int device, double seconds) {
  Part& part = PartOf(tenant);
  absl::MutexLock lock(&part.mutex);
  AccountOf(part, tenant).devices[device].seconds += std::max(0.0, seconds);
}

void TenantAccounts::AddOperation(const TenantId& tenant, int device, bool succeeded) {
  Part& part = PartOf(tenant);
  absl::MutexLock lock(&part.mutex);
  Account& account = AccountOf(part, tenant);
  ++account.operations;
  account.failed += succeeded ? 0 : 1;
  if (device >= 0) ++account.devices[device].operations;
}

v1::Usage TenantAccounts::TotalOf(const Part& part, const TenantId& tenant,
                                  const Account* account) const {
  v1::Usage usage;
  std::map<std::string, DeviceShare> shares;
  if (auto earlier = part.earlier.find(tenant); earlier != part.earlier.end()) {
    usage = earlier->second;
    for (const v1::DeviceUsage& device : usage.devices())
      shares[device.device()] = {device.device_seconds(), device.operations()};
    usage.clear_devices();
  } else {
    usage.set_tenant(absl::StrCat("tenants/", tenant.value));
    SetTimestamp(DateOf(start_), usage.mutable_start_time());
  }
  if (account != nullptr) {
    usage.set_upload_bytes(usage.upload_bytes() + account->uploaded);
    usage.set_download_bytes(usage.download_bytes() + account->downloaded);
    usage.set_array_byte_seconds(usage.array_byte_seconds() + account->array_byte_seconds);
    usage.set_operations(usage.operations() + account->operations);
    usage.set_operations_failed(usage.operations_failed() + account->failed);
    usage.set_jobs(usage.jobs() + account->jobs);
    for (const auto& [device, share] : account->devices) {
      DeviceShare& sum = shares[absl::StrCat("devices/", devices_[device])];
      sum.seconds += share.seconds;
      sum.operations += share.operations;
      usage.set_device_seconds(usage.device_seconds() + share.seconds);
    }
  }
  auto add = [&usage](const std::string& name, const DeviceShare& share) {
    v1::DeviceUsage* device = usage.add_devices();
    device->set_device(name);
    device->set_device_seconds(share.seconds);
    device->set_operations(share.operations);
  };
  // In the order of the daemon's devices; then devices that it no longer has.
  for (const std::string& device : devices_) {
    auto found = shares.find(absl::StrCat("devices/", device));
    if (found == shares.end()) continue;
    add(found->first, found->second);
    shares.erase(found);
  }
  for (const auto& [name, share] : shares) add(name, share);
  return usage;
}

v1::Usage TenantAccounts::Describe(const TenantId& tenant) const {
  SteadyTime now = Now();
  Part& part = PartOf(tenant);
  absl::MutexLock lock(&part.mutex);
  Account& account = AccountOf(part, tenant);
  identity::Quota quota = Effective(part, tenant);
  SumArrayTime(account, now);
  v1::Usage usage = TotalOf(part, tenant, &account);
  SetTimestamp(now, usage.mutable_time());
  AddQuota("array-bytes", account.array_bytes, quota.array_bytes, &usage);
  AddQuota("inline-bytes", account.inline_bytes, quota.inline_bytes, &usage);
  AddQuota("control-bytes", account.control->used(), quota.control_bytes, &usage);
  AddQuota("jobs", account.live_jobs, quota.jobs, &usage);
  return usage;
}

void TenantAccounts::AddEarlier(const TenantId& tenant, v1::Usage earlier) {
  Part& part = PartOf(tenant);
  absl::MutexLock lock(&part.mutex);
  part.earlier[tenant] = std::move(earlier);
}

std::vector<v1::Usage> TenantAccounts::Totals() const {
  std::vector<v1::Usage> totals;
  for (Part& part : parts_) {
    absl::MutexLock lock(&part.mutex);
    for (auto& [tenant, account] : part.accounts) {
      SumArrayTime(account, Now());
      const bool used = account.uploaded > 0 || account.downloaded > 0 || account.operations > 0 ||
                        account.jobs > 0 || account.array_byte_seconds > 0 ||
                        !account.devices.empty();
      if (used || part.earlier.count(tenant) > 0) totals.push_back(TotalOf(part, tenant, &account));
    }
    for (const auto& [tenant, earlier] : part.earlier) {
      if (part.accounts.count(tenant) == 0) totals.push_back(TotalOf(part, tenant, nullptr));
    }
  }
  return totals;
}

}  // namespace stride::session
