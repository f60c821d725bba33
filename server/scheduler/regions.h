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
// and goes with it; none is recorded, so that all end with the daemon. Thread-safe, except where
// said.
class Regions : public session::Catalogue::Observer {
 public:
  // A ticket is good for so long, and once.
  static constexpr absl::Duration kTicketLife = absl::Seconds(30);
  static constexpr size_t kTicketBytes = 32;
  // Each is a descriptor of the daemon, however small.
  static constexpr int64_t kMaxRegions = 512;
  static constexpr int64_t kMaxRegionsOfTenant = 64;

  explicit Regions(Core* core, absl::Duration ticket_life = kTicketLife)
      : core_(core), ticket_life_(ticket_life) {}
  ~Regions();

  // All but `socket_path`. Counts the bytes first, then takes them, without a transaction.
  absl::StatusOr<v1::CreateRegionResponse> Create(const TenantId& tenant,
                                                  const v1::CreateRegionRequest& request);
  absl::Status Delete(const TenantId& tenant, const std::string& name);
  // The region that the ticket was made for. NOT_FOUND: it is none, was used, is too old, or its
  // region has gone.
  absl::StatusOr<std::shared_ptr<Region>> Redeem(std::string_view ticket);
  // From now on the end of its session, or of the daemon, leaves the region's bytes as they are,
  // until LetGo or Delete; it is counted as long. One that has gone is no matter.
  void Hold(const std::string& name);
  void LetGo(const std::string& name);
  // NOT_FOUND, in the same words, for what does not exist and for what is another tenant's, or of
  // another session than `session` where that is not empty. INVALID_ARGUMENT about `field`.
  absl::StatusOr<std::shared_ptr<Region>> Find(const TenantId& tenant, const std::string& name,
                                               const std::string& session, std::string_view field);
  // Of all regions whose memory is taken.
  int64_t bytes() const;
  int64_t bytes(const TenantId& tenant) const;

  // --- for the catalogue ---
  void Added(GlobalTransaction&, session::Session&) override {}
  void Removed(GlobalTransaction& transaction, session::Session& session) override;
  void Added(TenantTransaction&, const std::shared_ptr<session::Array>&) override {}
  void Removed(TenantTransaction&, session::Array&) override {}

 private:
  // What regions take. Outlives this in the places that it gave.
  struct Books {
    struct Use {
      int64_t bytes = 0;
      int64_t regions = 0;
    };
    absl::Mutex mutex;
    Use all ABSL_GUARDED_BY(mutex);
    std::map<TenantId, Use> tenants ABSL_GUARDED_BY(mutex);  // none is zero
  };
  struct Ticket {
    std::weak_ptr<Region> region;
    SteadyTime expire_time;
  };
  absl::StatusOr<std::shared_ptr<const void>> TakePlace(const TenantId& tenant, int64_t bytes);
  absl::Status CheckSession(const TenantId& tenant, const std::string& id);
  void DropOldTickets(SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Elsewhere, since the end of a region takes a while.
  void DropLater(std::shared_ptr<Region> region);

  Core* const core_;
  const absl::Duration ticket_life_;
  const std::shared_ptr<Books> books_ = std::make_shared<Books>();
  // Taken inside a transaction, never around one.
  mutable absl::Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::shared_ptr<Region>> regions_ ABSL_GUARDED_BY(mutex_);  // by name
  // By name, whether its session has ended. Each is in regions_.
  std::map<std::string, bool> held_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Ticket, std::less<>> tickets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace stride::scheduler
