#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/base/unique_fd.h"
#include "server/broker/compiled_module.h"
#include "server/broker/staging.h"
#include "server/wire/status_page.h"
#include "server/wire/task_packet.h"
#include "server/wire/worker.pb.h"

namespace stride::broker {

// Why and where a worker ended.
struct WorkerDeath {
  // the first known cause: the worker's Fatal report, its signal or exit code, or Kill's argument
  absl::Status cause;
  uint64_t faulting_sequence = 0;   // the task at fault; 0: unknown
  uint32_t completed_sequence = 0;  // from the status page
  uint32_t started_sequence = 0;
  wire::Undone undone;  // from the status page
};

// Called on the worker's reader thread without a lock of the broker. They may call any method of
// Worker but must not block.
struct WorkerCallbacks {
  std::function<void(absl::Span<const wire::TaskResult>)> tasks_done;
  // Text printed by the task's kernels; called before tasks_done of that task. See wire::Printed.
  std::function<void(uint64_t sequence, std::string_view text, uint64_t dropped_lines)> printed;
  // Answer to a Cancel; see wire::TasksCancelled. Called before tasks_done of the removed tasks.
  std::function<void(uint64_t sequence, bool taken)> cancelled;
  // Called once, after the last tasks_done, when the worker can no longer touch its arenas: the
  // process was reaped, or the device has ended its context. Pending copies, arenas and loads have
  // received their error before.
  std::function<void(const WorkerDeath&)> died;
};

// The daemon's view of one worker process. Thread-safe. No method blocks on the worker unless its
// comment says so: packets wait in an Outbox until the socket has room, and a worker without a
// heartbeat is killed. After its death every method returns UNAVAILABLE. Releasing the last
// reference kills the process; callbacks may still run afterwards, so they own what they use.
class Worker {
 public:
  using LoadDone = std::function<void(absl::StatusOr<wire::ModuleLoaded>)>;
  virtual ~Worker() = default;

  virtual uint64_t id() const = 0;  // unique in the daemon's life
  virtual pid_t pid() const = 0;
  virtual const wire::DeviceDescription& device() const = 0;
  virtual bool alive() const = 0;
  // Descriptors from which a later daemon learns the worker's state, or -1. status_page() is valid
  // until Adopt; process(), readable once the process has ended, as long as this object lives.
  virtual int status_page() const { return -1; }
  virtual int process() const { return -1; }

  // Starts the delivery of results, which are held back before: a spare becomes a tenant's worker.
  // Call once.
  virtual void Adopt(WorkerCallbacks callbacks) = 0;

  // Blocks for the round trip. Only for devices without host memory.
  virtual absl::StatusOr<UniqueFd> CreateArena(uint64_t arena, uint64_t size) = 0;
  virtual absl::Status MapArena(uint64_t arena, uint64_t size, int fd) = 0;
  // Maps host memory on a device without host memory: wire::MapHostArena.
  virtual absl::Status MapHostArena(uint64_t arena, uint64_t size, int fd) = 0;
  virtual absl::Status UnmapArena(uint64_t arena) = 0;

  // Ordered with Submit, so later tasks may use the module at once. `loaded` gets the attributes or
  // the error, once, on the reader thread; it is not called when LoadModule itself fails.
  virtual absl::Status LoadModule(const CompiledModule& module, LoadDone loaded) = 0;
  virtual absl::Status UnloadModule(uint64_t module) = 0;

  // Ordered with Submit; send it after the modules of its steps. There is no answer. See
  // wire::LoadGraph.
  virtual absl::Status LoadGraph(uint64_t graph, const wire::Graph& steps) = 0;
  virtual absl::Status UnloadGraph(uint64_t graph) = 0;

  // The caller numbers tasks from 1 without gaps; INVALID_ARGUMENT for a wrong number, or for a
  // task over 100 KiB. The broker splits the tasks into packets: any number may be passed.
  virtual absl::Status Submit(const wire::TaskPacket& tasks) = 0;
  // Like Submit, but may hold the tasks until Flush or the next other message, which follows them.
  // For callers that hold a contended lock.
  virtual absl::Status SubmitLater(const wire::TaskPacket& tasks) { return Submit(tasks); }
  virtual void Flush() {}

  // Requests the removal of submitted tasks from the worker's queue: wire::Cancel. The answer is
  // WorkerCallbacks::cancelled; there is none when the worker dies first.
  virtual absl::Status Cancel(absl::Span<const uint64_t> sequences) = 0;

  // The worker's progress, from its status page. Not verified; for display only.
  struct Progress {
    uint32_t completed_sequence = 0;
    uint32_t started_sequence = 0;
  };
  virtual Progress progress() const = 0;

  // Calls `done` exactly once, also when the call itself fails: on the reader thread, or after the
  // broker's Shutdown on the calling thread. Offsets and sizes in bytes.
  virtual void Copy(bool to_device, uint64_t arena, uint64_t arena_offset, uint64_t staging_offset,
                    uint64_t size, std::function<void(absl::Status)> done) = 0;
  virtual StagingPool& staging() = 0;

  // --- regions (shared memory), for devices without host memory; `fd` must pass CheckMemoryFile
  // --- Copies sent afterwards may use the region.
  virtual absl::Status MapRegion(uint64_t region, uint64_t size, int fd) {
    return absl::UnimplementedError("regions");
  }
  virtual absl::Status UnmapRegion(uint64_t region) { return absl::UnimplementedError("regions"); }
  // Like Copy, with the region instead of staging. UNIMPLEMENTED where the device cannot access it.
  virtual void CopyRegion(bool to_device, uint64_t arena, uint64_t arena_offset, uint64_t region,
                          uint64_t region_offset, uint64_t size,
                          std::function<void(absl::Status)> done) {
    done(absl::UnimplementedError("regions"));
  }

  // Maps an arena of another device of this kind, which CopyFromPeer and the inputs of elementwise
  // launches may read. Unmap it with UnmapArena.
  virtual absl::Status MapPeerArena(uint64_t /*arena*/, uint64_t /*size*/, int /*fd*/) {
    return absl::UnimplementedError("this worker maps no other device's memory");
  }
  // Copies from an arena mapped by MapPeerArena, or one of the worker's own, to one of its own.
  // `done` as in Copy.
  virtual void CopyFromPeer(uint64_t /*arena*/, uint64_t /*offset*/, uint64_t /*source_arena*/,
                            uint64_t /*source_offset*/, uint64_t /*size*/,
                            std::function<void(absl::Status)> done) {
    done(absl::UnimplementedError("this worker reads no other device's memory"));
  }

  // Sends SIGKILL; `died` follows with this cause unless an earlier one is known.
  virtual void Kill(absl::Status cause) = 0;
  // Lets the worker finish and exit; kills it after a grace period. `died` follows with OK.
  virtual void Shutdown() = 0;
};

}  // namespace stride::broker
