#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"
#include "server/base/unique_fd.h"
#include "server/engine/core/core.h"
#include "server/engine/memory/lent_blocks.h"
#include "server/engine/scheduling/scheduler.h"
#include "server/engine/service/pinned_memory.h"
#include "server/session/array.h"
#include "stride/v1/region_service.pb.h"

namespace stride::engine {

// Arrays whose memory a client of this host maps. Each lies in an arena of its own (LentBlocks),
// so that the descriptor shows nothing else. While it is exported it is not moved, freed
// or written, and counts as its tenant's; an export ends with Release. None is recorded: they end
// with the daemon. Thread-safe, except where said.
class Exports {
 public:
  // Each takes descriptors of the daemon, however small it is.
  static constexpr int64_t kMaxExports = 1024;
  static constexpr int64_t kMaxExportsOfTenant = 256;
  // Share of a device's memory; the rest can always be evicted.
  static constexpr double kMaxShare = 0.75;
  static constexpr double kMaxShareOfTenant = 0.5;

  Exports(Core* core, Scheduler* scheduler)
      : core_(core),
        scheduler_(scheduler),
        lent_blocks_(core, &scheduler->queues(), &scheduler->memory(), &scheduler->starter()) {}

  // Waits for accepted work that writes the array. The caller has no transaction.
  absl::StatusOr<PinnedMemory> Map(const TenantId& tenant, const v1::MapArrayRequest& request,
                                   SteadyTime deadline, v1::MapArrayResponse* response);
  static bool IsName(std::string_view name);
  // Ends the export. `end` is dropped once the loan has ended.
  void Release(const std::string& name, std::shared_ptr<const void> end);

 private:
  struct Use {
    int64_t exports = 0;
    std::map<int, int64_t> bytes;  // by device
  };
  // An arena with clients that have it mapped.
  struct Loan {
    TenantId tenant;
    int device = 0;
    std::shared_ptr<store::Buffer> buffer;
    store::Allocation block;
    int num_exports = 0;
  };
  struct Export {
    TenantId tenant;
    uint64_t arena = 0;  // the loan's arena
  };

  absl::StatusOr<std::shared_ptr<session::Array>> Find(TenantTransaction& transaction,
                                                       const TenantId& tenant,
                                                       const session::ArrayName& name,
                                                       bool hand_over);
  int DeviceFor(TenantTransaction& transaction, const TenantId& tenant,
                const session::ArrayName& name, const store::Buffer& buffer);
  // Returns the export's name.
  absl::StatusOr<std::string> Lend(TenantTransaction& transaction, const TenantId& tenant,
                                   const session::ArrayName& name,
                                   const std::shared_ptr<session::Array>& array,
                                   const store::Allocation& block, int device, bool hand_over,
                                   int64_t* reserved, v1::MapArrayResponse* response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // One more export, and bytes of the device. The first checks.
  absl::Status Take(const TenantId& tenant, int device, int64_t exports, int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Return(const TenantId& tenant, int device, int64_t exports, int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(GlobalTransaction& transaction, const Export& ended);

  Core* const core_;
  Scheduler* const scheduler_;
  LentBlocks lent_blocks_;
  // Taken inside a transaction, never around one.
  absl::Mutex mutex_;
  Use all_ ABSL_GUARDED_BY(mutex_);
  std::map<TenantId, Use> tenants_ ABSL_GUARDED_BY(mutex_);  // none has no export
  std::map<uint64_t, Loan> loans_ ABSL_GUARDED_BY(mutex_);   // by arena
  std::map<std::string, Export, std::less<>> exports_ ABSL_GUARDED_BY(mutex_);  // by name
};

}  // namespace stride::engine
