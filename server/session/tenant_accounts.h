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
#include "server/base/environment.h"
#include "server/base/ids.h"
#include "server/base/tenant_partition.h"
#include "server/identity/quota.h"
#include "server/session/control_account.h"
#include "stride/v1/tenant_service.pb.h"

namespace stride::session {

// Quotas of each tenant, its present use, and its use since the daemon started (and before that, by
// AddEarlier). Thread-safe. Its locks, one per tenant partition, may be taken under any other lock
// and are held briefly, except while Totals describes a partition's tenants.
//
// Quotas bound requests before anything is reserved. A lowered quota releases nothing: new requests
// are refused until enough use has ended.
class TenantAccounts : public std::enable_shared_from_this<TenantAccounts> {
 public:
  // `devices`: their ids, by index.
  explicit TenantAccounts(identity::Quota defaults = {}, std::vector<std::string> devices = {})
      : defaults_(defaults), devices_(std::move(devices)) {}

  // Takes effect at once. `others` is for tenants absent from `quotas`. Limits absent from both are
  // those passed to the constructor.
  void SetQuotas(const std::map<TenantId, identity::Quota>& quotas, const identity::Quota& others);
  identity::Quota QuotaOf(const TenantId& tenant) const;
  // The limit of operations alone, which each operation checks.
  int64_t MaxOperations(const TenantId& tenant) const;

  // --- arrays. The caller serializes check and making (a transaction). ---
  // RESOURCE_EXHAUSTED (QUOTA) when this much more would be too much.
  absl::Status CheckArrayBytes(const TenantId& tenant, int64_t bytes) const;
  absl::Status CheckInlineBytes(const TenantId& tenant, int64_t bytes) const;
  // `control_bytes`: the daemon's memory for the arrays' metadata. Negative: they are released.
  void AddArrayBytes(const TenantId& tenant, int64_t bytes, int64_t control_bytes);
  // Counts the bytes while the result lives.
  std::shared_ptr<const void> HoldInlineBytes(const TenantId& tenant, int64_t bytes);

  // --- the daemon's memory for a tenant's objects of all kinds ---
  std::shared_ptr<ControlAccount> ControlOf(const TenantId& tenant) const;
  // Shared by all accounts: makes room when one is full.
  RoomMaker& room() { return *room_; }

  // Counts one more unfinished job while the result lives.
  absl::StatusOr<std::shared_ptr<const void>> EnterJob(const TenantId& tenant);
  // A job that an earlier daemon accepted: counted even beyond the quota.
  std::shared_ptr<const void> RestoreJob(const TenantId& tenant);
  void AddJob(const TenantId& tenant);  // counts an accepted job
  int64_t live_jobs(const TenantId& tenant) const;

  // --- transfers --- Counts bytes that a client has sent. Returns how long it must wait before it
  // may send more.
  absl::Duration AddUpload(const TenantId& tenant, int64_t bytes);
  // How long until the tenant's uploads are within its rate again.
  absl::Duration UploadDelay(const TenantId& tenant) const;
  void AddDownload(const TenantId& tenant, int64_t bytes);

  // --- work ---
  void AddDeviceTime(const TenantId& tenant, int device, double seconds);
  void AddOperation(const TenantId& tenant, int device, bool succeeded);

  // Leaves the use of `operations` and `sessions` unset, since it is not known here.
  v1::Usage Describe(const TenantId& tenant) const;

  // --- usage that outlives the daemon --- Adds counts of earlier daemons, in the form of Totals.
  // Once per tenant.
  void AddEarlier(const TenantId& tenant, v1::Usage earlier);
  // One entry for each tenant with any use: its counts, without `time` and quotas.
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
    SteadyTime array_time;  // time up to which array_byte_seconds is summed
    int64_t uploaded = 0, downloaded = 0;
    int64_t operations = 0, failed = 0, jobs = 0;
    std::map<int, DeviceShare> devices;
    // Upload rate: bytes sent in excess of the rate, as of debt_time.
    double debt = 0;
    SteadyTime debt_time;
  };
  // Decrements live_jobs at the job's end.
  std::shared_ptr<const void> JobPlace(const TenantId& tenant);

  // Quotas in force. Immutable: changes replace the object.
  struct Quotas {
    std::map<TenantId, identity::Quota> own;
    identity::Quota others;
  };
  struct alignas(64) Part {
    absl::Mutex mutex;
    std::shared_ptr<const Quotas> quotas ABSL_GUARDED_BY(mutex) = std::make_shared<const Quotas>();
    std::map<TenantId, Account> accounts ABSL_GUARDED_BY(mutex);  // never erased
    std::map<TenantId, v1::Usage> earlier ABSL_GUARDED_BY(mutex);
    // The account looked up last, since callers mostly repeat the same one.
    std::pair<const TenantId, Account>* latest ABSL_GUARDED_BY(mutex) = nullptr;
  };
  Part& PartOf(const TenantId& tenant) const { return parts_[PartitionOf(tenant)]; }
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
  // Most daemons limit no uploads: false skips the lock.
  std::atomic<bool> any_rate_{false};
  mutable std::array<Part, kNumTenantPartitions> parts_;
};

}  // namespace stride::session
