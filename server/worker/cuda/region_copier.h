#pragma once

#include <cuda.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/base/memory_file.h"
#include "server/base/unique_fd.h"
#include "server/worker/cuda/completion_poller.h"
#include "server/worker/cuda/driver/driver.h"
#include "server/worker/cuda/driver/handles.h"

namespace stride::cuda {

// Copies between device memory and regions, which the daemon shares with a client. Regions are
// mapped and pinned here, so that DMA accesses the client's own memory.
//
// One thread does all work in the order of the calls, on its own streams: pinning takes 57 ms per
// GiB, and launches must not wait for it. Copies that follow the pinning of a region do wait. Its
// methods are for one thread, the command loop's, and return at once unless noted.
class RegionCopier {
 public:
  // The stream of one direction's copies, and the poller's lane that reports them.
  struct Direction {
    CUstream stream = nullptr;
    CompletionPoller::Lane lane = CompletionPoller::kRegionUpload;
    CUdeviceptr mark = 0;  // where the stream writes the number of the latest completed copy
  };

  // All arguments must outlive it.
  RegionCopier(const Driver& driver, const Context& context, CompletionPoller& poller,
               Direction upload, Direction download);
  // Completes enqueued work, then releases all regions.
  ~RegionCopier();

  // If a region cannot be mapped, copies that name it fail; UNIMPLEMENTED where it cannot be
  // pinned.
  void Map(uint64_t region, uint64_t size, UniqueFd fd);
  // Waits, on the copier's thread, for copies in flight.
  void Unmap(uint64_t region);

  struct Copy {
    uint64_t id = 0;
    uint32_t mark = 0;  // grows by one in each direction
    bool to_device = false;
    uint64_t region = 0;
    uint64_t region_offset = 0;
    CUdeviceptr address = 0;
    uint64_t size = 0;
    absl::Status status;  // an error that is known already
  };
  void Enqueue(Copy copy);

  // Blocks until the device has received all enqueued work.
  void Flush();

 private:
  struct Mapped {
    MemoryMap map;
    PinnedRegion pinned;  // destroyed first
    absl::Status status;  // why it is not pinned
  };
  void Push(std::function<void()> work);
  void Run();
  Mapped MapNow(uint64_t size, const UniqueFd& fd);
  void UnmapNow(uint64_t region);
  void CopyNow(const Copy& copy);
  absl::Status Launch(const Copy& copy, CUstream stream);
  // Ends the process where the device is lost.
  void Require(CUresult result);

  const Driver& driver_;
  const Context& context_;
  CompletionPoller& poller_;
  const Direction upload_, download_;
  std::unordered_map<uint64_t, Mapped> regions_;  // used by the thread

  absl::Mutex mutex_;
  std::deque<std::function<void()>> work_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace stride::cuda
