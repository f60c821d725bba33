#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/ids.h"
#include "server/base/stripe.h"
#include "server/base/surroundings.h"
#include "server/identity/quota.h"
#include "server/session/control_account.h"
#include "stride/v1/tenant_service.pb.h"

namespace stride::session {

// The quotas of each tenant, its present use, and its use since the daemon started (and before it,
// by AddEarlier). Thread-safe; its locks, one for each stripe of tenants, are taken under any
// other and held for a few instructions, or while the usage of a stripe's tenants is described.
//
// Quotas bound what is asked for, before anything is reserved. Lowering one takes nothing away:
// new requests are refused until enough has ended.
class TenantAccounts : public std::enable_shared_from_this<TenantAccounts> {
 public:
  // `devices`: their ids, by index.
  explicit TenantAccounts(identity::Quota defaults = {}, std::vector<std::string> devices = {})
      : defaults_(defaults), devices_(std::move(devices)) {}

  // In force at once. `others` is for tenants that `quotas` does not name. What neither says is as
  // given to the constructor.
  void SetQuotas(const std::map<TenantId, identity::Quota>& quotas, const identity::Quota& others);
  identity::Quota QuotaOf(const TenantId& tenant) const;
  // That quota's operations alone: it is looked at with every one of them.
  int64_t MaxOperations(const TenantId& tenant) const;

  // --- arrays. The caller serializes check and making (a transaction). ---
  // RESOURCE_EXHAUSTED (QUOTA) when this much more would be too much.
  absl::Status CheckArrayBytes(const TenantId& tenant, int64_t bytes) const;
  absl::Status CheckInlineBytes(const TenantId& tenant, int64_t bytes) const;
  // `control_bytes`: what the daemon keeps for them. Negative: they are gone.
  void AddArrayBytes(const TenantId& tenant, int64_t bytes, int64_t control_bytes);
  // Counted while the result lives.
  std::shared_ptr<const void> HoldInlineBytes(const TenantId& tenant, int64_t bytes);

  // --- what the daemon keeps for a tenant's things of every kind ---
  std::shared_ptr<ControlAccount> ControlOf(const TenantId& tenant) const;
  // Asked for room by all of these.
  RoomMaker& room() { return *room_; }

  // One more job that has not ended, for as long as the result lives.
  absl::StatusOr<std::shared_ptr<const void>> EnterJob(const TenantId& tenant);
  // One that an earlier daemon accepted: counted whatever the quota is now.
  std::shared_ptr<const void> RestoreJob(const TenantId& tenant);
  void AddJob(const TenantId& tenant);  // it was accepted
  int64_t live_jobs(const TenantId& tenant) const;

  // --- transfers ---
  // Meters bytes that a client has sent, and tells how long it has to wait before it may send more.
  absl::Duration AddUpload(const TenantId& tenant, int64_t bytes);
  // How long until the tenant's uploads are within its rate again.
  absl::Duration UploadDelay(const TenantId& tenant) const;
  void AddDownload(const TenantId& tenant, int64_t bytes);

  // --- work ---
  void AddDeviceTime(const TenantId& tenant, int device, double seconds);
  void AddOperation(const TenantId& tenant, int device, bool succeeded);

  // How much of `operations` and `sessions` is in use is not known here.
  v1::Usage Describe(const TenantId& tenant) const;

  // --- usage that outlives the daemon ---
  // Adds what earlier daemons counted, as Totals gave it there. Once for a tenant.
  void AddEarlier(const TenantId& tenant, v1::Usage earlier);
  // One entry for each tenant that has ever used anything: its counts, without `time` and quotas.
  std::vector<v1::Usage> Totals() const;

 private:
  struct DeviceShare {
    double seconds = 0;
    int64_t operations = 0;
  };
  struct Account {
    std::shared_ptr<ControlAccount> control;
    int64_t array_bytes = 0, inline_bytes = 0, live_jobs = 0;
    double array_byte_seconds = 0;
    SteadyTime array_time;  // up to which array_byte_seconds is summed
    int64_t uploaded = 0, downloaded = 0;
    int64_t operations = 0, failed = 0, jobs = 0;
    std::map<int, DeviceShare> devices;
    // Upload rate: bytes sent and not yet earned, as of debt_time.
    double debt = 0;
    SteadyTime debt_time;
  };
  // Gives the job's place back at its end.
  std::shared_ptr<const void> JobPlace(const TenantId& tenant);

  // In force for all, and never changed: replaced.
  struct Quotas {
    std::map<TenantId, identity::Quota> own;
    identity::Quota others;
  };
  struct alignas(64) Part {
    absl::Mutex mutex;
    std::shared_ptr<const Quotas> quotas ABSL_GUARDED_BY(mutex) = std::make_shared<const Quotas>();
    std::map<TenantId, Account> accounts ABSL_GUARDED_BY(mutex);  // never erased
    std::map<TenantId, v1::Usage> earlier ABSL_GUARDED_BY(mutex);
    // That was asked for last: the same comes again and again.
    std::pair<const TenantId, Account>* latest ABSL_GUARDED_BY(mutex) = nullptr;
  };
  Part& PartOf(const TenantId& tenant) const { return parts_[StripeOf(tenant)]; }
  Account& AccountOf(Part& part, const TenantId& tenant) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(part.mutex);
  int64_t ControlLimit(const Quotas& quotas, const TenantId& tenant) const;
  identity::Quota Effective(const Part& part, const TenantId& tenant) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(part.mutex);
  static void SumArrayTime(Account& account, SteadyTime now);
  // `account` may be null.
  v1::Usage TotalOf(const Part& part, const TenantId& tenant, const Account* account) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(part.mutex);
  static double Debt(const Account& account, double rate, SteadyTime now);

  const identity::Quota defaults_;
  const std::vector<std::string> devices_;
  const std::shared_ptr<RoomMaker> room_ = std::make_shared<RoomMaker>();
  const SteadyTime start_ = Now();
  // Most daemons limit no uploads; then nobody need look.
  std::atomic<bool> any_rate_{false};
  mutable std::array<Part, kNumStripes> parts_;
};

}  // namespace stride::session
