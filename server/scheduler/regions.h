#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/steady_time.h"
#include "server/scheduler/core.h"
#include "server/scheduler/region.h"
#include "stride/v1/region_service.pb.h"

namespace stride::scheduler {

// Memory shared with clients of this host, by name and by ticket. Each region belongs to a session
// and ends with it. No region is recorded, so all end with the daemon. Thread-safe.
class Regions : public session::Catalogue::Observer {
 public:
  // A ticket is valid once, for this time.
  static constexpr absl::Duration kTicketLife = absl::Seconds(30);
  static constexpr size_t kTicketBytes = 32;
  // Each region takes a descriptor of the daemon, whatever its size.
  static constexpr int64_t kMaxRegions = 512;
  static constexpr int64_t kMaxRegionsOfTenant = 64;

  explicit Regions(Core* core, absl::Duration ticket_life = kTicketLife)
      : core_(core), ticket_life_(ticket_life) {}
  ~Regions();

  // Fills all fields but `socket_path`. Reserves the bytes in the quota, then allocates them
  // without a transaction.
  absl::StatusOr<v1::CreateRegionResponse> Create(const TenantId& tenant,
                                                  const v1::CreateRegionRequest& request);
  absl::Status Delete(const TenantId& tenant, const std::string& name);
  // The region that the ticket was issued for. NOT_FOUND: the ticket does not exist, was used or
  // has expired, or its region has ended.
  absl::StatusOr<std::shared_ptr<Region>> Redeem(std::string_view ticket);
  // Pins the region until LetGo or Delete: the end of its session, or of the daemon, does not
  // discard its bytes. A pinned region still counts towards quotas. Ignores a region that has
  // ended.
  void Hold(const std::string& name);
  void LetGo(const std::string& name);
  // NOT_FOUND, with the same text, if the region does not exist, is another tenant's, or is not of
  // `session` where that is not empty. INVALID_ARGUMENT, with `field`, if the name is malformed.
  absl::StatusOr<std::shared_ptr<Region>> Find(const TenantId& tenant, const std::string& name,
                                               const std::string& session, std::string_view field);
  // Bytes of all regions, of all tenants or of one.
  int64_t bytes() const;
  int64_t bytes(const TenantId& tenant) const;

  // --- for the catalogue ---
  void Added(GlobalTransaction&, session::Session&) override {}
  void Removed(GlobalTransaction& transaction, session::Session& session) override;
  void Added(TenantTransaction&, const std::shared_ptr<session::Array>&) override {}
  void Removed(TenantTransaction&, session::Array&) override {}

 private:
  // Bytes and counts of regions. Shared with the places of regions, which may outlive this.
  struct Books {
    struct Use {
      int64_t bytes = 0;
      int64_t regions = 0;
    };
    absl::Mutex mutex;
    Use all ABSL_GUARDED_BY(mutex);
    std::map<TenantId, Use> tenants ABSL_GUARDED_BY(mutex);  // no entry is zero
  };
  struct Ticket {
    std::weak_ptr<Region> region;
    SteadyTime expire_time;
  };
  absl::StatusOr<std::shared_ptr<const void>> TakePlace(const TenantId& tenant, int64_t bytes);
  absl::Status CheckSession(const TenantId& tenant, const std::string& id);
  void DropOldTickets(SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Releases the region on another thread, since its destructor blocks.
  void DropLater(std::shared_ptr<Region> region);

  Core* const core_;
  const absl::Duration ticket_life_;
  const std::shared_ptr<Books> books_ = std::make_shared<Books>();
  // Locked inside a transaction; no transaction begins while it is locked.
  mutable absl::Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::shared_ptr<Region>> regions_ ABSL_GUARDED_BY(mutex_);  // by name
  // Pinned regions by name, and whether the session has ended. Each is in regions_.
  std::map<std::string, bool> held_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Ticket, std::less<>> tickets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace stride::scheduler
