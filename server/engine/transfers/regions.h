#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/core/core.h"
#include "server/engine/service/pinned_memory.h"
#include "server/engine/service/region.h"
#include "stride/v1/region_service.pb.h"

namespace stride::engine {

// Memory shared with clients of this host, by name. Each region belongs to a session and ends with
// it, unless it is pinned. No region is recorded, so all end with the daemon. Thread-safe.
class Regions : public session::Catalogue::Observer {
 public:
  // Each region takes a descriptor of the daemon, whatever its size.
  static constexpr int64_t kMaxRegions = 512;
  static constexpr int64_t kMaxRegionsOfTenant = 64;

  explicit Regions(Core* core) : core_(core) {}
  ~Regions();

  // Reserves the bytes in the quota, then allocates them without a transaction. The region is
  // pinned until Release or Delete: the end of its session, or of the daemon, does not discard its
  // bytes. A pinned region still counts towards quotas.
  absl::StatusOr<PinnedMemory> Create(const TenantId& tenant,
                                      const v1::CreateRegionRequest& request,
                                      v1::CreateRegionResponse* response);
  absl::Status Delete(const TenantId& tenant, const std::string& name);
  // Unpins. Ignores a region that is not pinned.
  void Release(const std::string& name);
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
  absl::StatusOr<std::shared_ptr<const void>> TakePlace(const TenantId& tenant, int64_t bytes);
  absl::Status CheckSession(const TenantId& tenant, const std::string& id);
  // Releases the region on another thread, since its destructor blocks.
  void DropLater(std::shared_ptr<Region> region);

  Core* const core_;
  const std::shared_ptr<Books> books_ = std::make_shared<Books>();
  // Locked inside a transaction; no transaction begins while it is locked.
  mutable absl::Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::shared_ptr<Region>> regions_ ABSL_GUARDED_BY(mutex_);  // by name
  // Pinned regions by name, and whether the session has ended. Each is in regions_.
  std::map<std::string, bool> pinned_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace stride::engine
