#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/memory/staged_copy.h"
#include "server/engine/scheduling/scheduler.h"
#include "server/engine/service/upload.h"
#include "server/engine/transfers/region_copies.h"

namespace stride::engine {

// Writes the bytes of an upload: directly to host memory or a file, or to device memory through
// staging or from the client's own region. One thread at a time; the caller has no transaction.
class ArrayWriter : public ByteSink {
 public:
  ArrayWriter(Core* core, Scheduler* scheduler) : core_(core), scheduler_(scheduler) {}
  ~ArrayWriter() override;

  // `offset` counts from the start of the allocation. With a region, the bytes come by WriteShared,
  // else by Write. Blocks until the device queue has a worker if the device needs one.
  absl::Status Open(DeviceQueue& queue, const store::Allocation& target, int64_t offset,
                    SteadyTime deadline, std::shared_ptr<Region> region = nullptr);

  // --- ByteSink ---
  absl::Status Write(std::string_view bytes) override;
  absl::Status WriteShared(const Region& region, int64_t offset, int64_t size) override;
  absl::Status Finish() override;

 private:
  absl::Status OpenStaged(uint64_t offset);
  absl::Status GoOn(absl::Status lost);
  absl::Status OpenShared();
  // Sends the pieces in `unsent_`; with `wait`, blocks until all copies have ended.
  absl::Status Send(bool wait);

  Core* const core_;
  Scheduler* const scheduler_;
  DeviceQueue* queue_ = nullptr;
  store::Allocation target_;       // keeps the arena mapped
  std::byte* position_ = nullptr;  // host memory
  uint64_t file_offset_ = 0;  // in the arena's file, if there is neither host memory nor staging
  std::unique_ptr<StagedWriter> staged_;
  SteadyTime deadline_;
  int num_tries_ = 0;               // attempts that a worker's death ended
  std::shared_ptr<Region> region_;  // null: the bytes come by Write
  std::unique_ptr<RegionCopies> shared_;
  std::deque<RegionCopies::Piece> unsent_;
  uint64_t next_offset_ = 0;  // in the arena, for the next bytes from the region
};

}  // namespace stride::engine
