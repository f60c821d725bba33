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
  absl::Status cause;  // first cause kept: its own Fatal report, the signal or exit code, or what
                       // Kill() was given
  uint64_t faulting_sequence = 0;   // the task at fault, 0: none is known to be
  uint32_t completed_sequence = 0;  // from the status page
  uint32_t started_sequence = 0;
  wire::Undone undone;  // likewise
};

// Called on the worker's reader thread with no lock of the broker held. They may call any method of
// Worker but must not block.
struct WorkerCallbacks {
  std::function<void(absl::Span<const wire::TaskResult>)> tasks_done;
  // Text that the task's kernels printed; before tasks_done of that task. See wire::Printed.
  std::function<void(uint64_t sequence, std::string_view text, uint64_t dropped_lines)> printed;
  // The answer to a Cancel; see wire::TasksCancelled. Before tasks_done of any task taken out.
  std::function<void(uint64_t sequence, bool taken)> cancelled;
  // Once, when nothing of the worker can touch its arenas any more (the process was reaped, or the
  // device has ended its context), and after the last tasks_done. Pending copies, arenas and
  // loads have got their error before.
  std::function<void(const WorkerDeath&)> died;
};

// One worker process from the daemon's side. Thread-safe. Nothing blocks on the worker unless it
// says so; a socket that a worker does not read is bounded by a send timeout, after which the
// worker is killed. After death every method answers UNAVAILABLE. Letting go of the last reference
// kills the process; callbacks that were given still run, so they own what they touch.
class Worker {
 public:
  using LoadDone = std::function<void(absl::StatusOr<wire::ModuleLoaded>)>;
  virtual ~Worker() = default;

  virtual uint64_t id() const = 0;  // unique in the daemon's life
  virtual pid_t pid() const = 0;
  virtual const wire::DeviceDescription& device() const = 0;
  virtual bool alive() const = 0;
  // Descriptors from which a later daemon learns the worker's state: the status page, until Adopt,
  // and the process (readable once it has ended), as long as this lives. -1: there is none.
  virtual int status_page() const { return -1; }
  virtual int process() const { return -1; }

  // Until this is called results are kept back; a spare becomes a tenant's worker by it. Once.
  virtual void Adopt(WorkerCallbacks callbacks) = 0;

  // Blocks for the round trip. Only for devices without host memory.
  virtual absl::StatusOr<UniqueFd> CreateArena(uint64_t arena, uint64_t size) = 0;
  virtual absl::Status MapArena(uint64_t arena, uint64_t size, int fd) = 0;
  // Of host memory, for a device without: wire::MapHostArena.
  virtual absl::Status MapHostArena(uint64_t arena, uint64_t size, int fd) = 0;
  virtual absl::Status UnmapArena(uint64_t arena) = 0;

  // Sent in order with Submit, so tasks sent afterwards may use it at once. `loaded` gets the
  // attributes or the error, once, on the reader thread; when the call itself fails it is not
  // called.
  virtual absl::Status LoadModule(const CompiledModule& module, LoadDone loaded) = 0;
  virtual absl::Status UnloadModule(uint64_t module) = 0;

  // Likewise, after the modules that its steps name; nothing answers. See wire::LoadGraph.
  virtual absl::Status LoadGraph(uint64_t graph, const wire::Graph& steps) = 0;
  virtual absl::Status UnloadGraph(uint64_t graph) = 0;

  // Sequences are the caller's: from 1, growing by one; INVALID_ARGUMENT when they do not, or when
  // one task is over 100 KiB. Packets of the socket are the broker's business: any number of tasks
  // may be given.
  virtual absl::Status Submit(const wire::TaskPacket& tasks) = 0;
  // Likewise, but the tasks may stay here until Flush, or until something else is sent, which goes
  // behind them: for one who holds a lock that others need more than the worker its tasks.
  virtual absl::Status SubmitLater(const wire::TaskPacket& tasks) { return Submit(tasks); }
  virtual void Flush() {}

  // Asks for submitted tasks to be taken out of the worker's queue: wire::Cancel. WorkerCallbacks
  // tells the answer; none comes when the worker dies first.
  virtual absl::Status Cancel(absl::Span<const uint64_t> sequences) = 0;

  // How far it came, from the status page: what it says, for show only.
  struct Progress {
    uint32_t completed_sequence = 0;
    uint32_t started_sequence = 0;
  };
  virtual Progress progress() const = 0;

  // `done` is called on the reader thread, exactly once, also when the call itself fails (after the
  // broker's Shutdown: on the calling thread).
  virtual void Copy(bool to_device, uint64_t arena, uint64_t arena_offset, uint64_t staging_offset,
                    uint64_t size, std::function<void(absl::Status)> done) = 0;
  virtual StagingPool& staging() = 0;

  // --- regions, of devices without host memory; a descriptor as CheckMemoryFile wants it ---
  // Copies that are sent afterwards may name it.
  virtual absl::Status MapRegion(uint64_t region, uint64_t size, int fd) {
    return absl::UnimplementedError("regions");
  }
  virtual absl::Status UnmapRegion(uint64_t region) { return absl::UnimplementedError("regions"); }
  // As Copy, with the region in the place of staging. UNIMPLEMENTED where the device cannot reach
  // it.
  virtual void CopyRegion(bool to_device, uint64_t arena, uint64_t arena_offset, uint64_t region,
                          uint64_t region_offset, uint64_t size,
                          std::function<void(absl::Status)> done) {
    done(absl::UnimplementedError("regions"));
  }

  // An arena of another device of this kind, which CopyFromPeer and the inputs of elementwise
  // launches read; to be unmapped as others.
  virtual absl::Status MapPeerArena(uint64_t /*arena*/, uint64_t /*size*/, int /*fd*/) {
    return absl::UnimplementedError("this worker maps no other device's memory");
  }
  // From an arena that MapPeerArena has mapped, or one of its own, into one of its own. As Copy.
  virtual void CopyFromPeer(uint64_t /*arena*/, uint64_t /*offset*/, uint64_t /*source_arena*/,
                            uint64_t /*source_offset*/, uint64_t /*size*/,
                            std::function<void(absl::Status)> done) {
    done(absl::UnimplementedError("this worker reads no other device's memory"));
  }

  // SIGKILL; `died` follows with this cause unless an earlier one is known.
  virtual void Kill(absl::Status cause) = 0;
  // Lets it finish and exit; kills it after a grace time. `died` follows with OK.
  virtual void Shutdown() = 0;
};

}  // namespace stride::broker
