#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/base/printed_text.h"
#include "server/base/unique_fd.h"
#include "server/wire/status_page.h"
#include "server/wire/worker.pb.h"

namespace stride::worker {

// Receives a device's reports. Implemented by the command loop. Methods may be called from any
// thread and do not block on the daemon for long, except Printed.
class Completions {
 public:
  virtual ~Completions() = default;
  // Called in submission order. `run_seconds`: as measured by the device. `more`: another
  // completion follows within microseconds, so the report may wait for it.
  virtual void TaskDone(uint64_t sequence, const absl::Status& status, double run_seconds,
                        bool more) = 0;
  // Answers Device::Cancel; called before TaskDone of any removed task.
  virtual void TasksCancelled(uint64_t sequence, bool taken) = 0;
  virtual void CopyDone(uint64_t id, const absl::Status& status) = 0;
  // Text printed by a task's kernels. Called before TaskDone of that task; bounded by PrintBudget.
  virtual void Printed(uint64_t sequence, const PrintedText& printed) = 0;
  // The process cannot continue: sends the report to the daemon and exits with code 1. Does not
  // return. `context_lost`: the device has ended the context, so no code of this process runs there
  // any more.
  [[noreturn]] virtual void Fatal(uint64_t sequence, const absl::Status& status,
                                  bool context_lost) = 0;
};

// A device as the command loop drives it: one tenant, one device, one process. Requirements for
// implementations:
// 1. All methods are called from the command loop's thread, in the order in which the daemon
//    sent the commands. Completions come from any thread.
// 2. Enqueue and Copy return soon. Tasks run in order of submission (at least as far as results
//    show). Copies run in order within each direction, concurrently with tasks.
// 3. Every enqueued task and copy gets exactly one completion, or the process ends through Fatal
//    or a signal.
// 4. StatusPage::started_sequence is stored before a task may access memory, and
//    completed_sequence after its end, before TaskDone. For a task that failed or was removed,
//    MarkFailed or MarkTakenOut comes before both of these.
// 5. No plan or kernel may access memory outside mapped arenas, staging and scratch, as far as the
//    hardware can enforce it: offsets and extents of operands are checked against the arena before
//    a launch (the process boundary contains kernels' own arithmetic).
// 6. A failure that leaves the device usable is the task's status: FAILED_PRECONDITION for a fault
//    of the kernel, RESOURCE_EXHAUSTED for memory, UNIMPLEMENTED naming the feature that this
//    device kind lacks. Others are INTERNAL.
// 7. Enqueue must not wait for tasks to end, as far as the device allows, so that a later Cancel
//    is read while they are queued. TaskGate decides between Begin and Cancel.
class Device {
 public:
  virtual ~Device() = default;

  struct Environment {
    int device_index = 0;
    int num_threads = 0;           // CPU devices; 0: all
    std::byte* staging = nullptr;  // shared with the daemon; valid until the process ends
    uint64_t staging_bytes = 0;
    wire::StatusPage* status_page = nullptr;
    Completions* completions = nullptr;
    // The device owns the process's standard output, for text printed by kernels.
    bool owns_standard_output = false;
  };
  // First call. May take long (context creation); the process is not yet assigned to a tenant.
  virtual absl::Status Start(const Environment& environment) = 0;

  // Allocates and maps device memory of `size` bytes (a multiple of the granularity); returns its
  // shareable descriptor. UNIMPLEMENTED for devices on host memory.
  virtual absl::StatusOr<UniqueFd> CreateArena(uint64_t arena, uint64_t size) = 0;
  virtual absl::Status MapArena(uint64_t arena, uint64_t size, UniqueFd fd) = 0;
  // Maps host memory that the device accesses in place: wire::MapHostArena.
  virtual absl::Status MapHostArena(uint64_t arena, uint64_t size, UniqueFd fd) = 0;
  virtual absl::Status UnmapArena(uint64_t arena) = 0;
  // Maps an arena of another device of this kind for reading: as an input of elementwise tasks and,
  // unless arenas are host memory, as a source of copies (wire::Copy.source_arena). Other tasks
  // that name it fail. UnmapArena unmaps it too.
  virtual absl::Status MapPeerArena(uint64_t /*arena*/, uint64_t /*size*/, UniqueFd /*fd*/) {
    return absl::UnimplementedError("this device reads no other device's memory");
  }

  // `object` is valid for the call only. The caller sets `module` and `status` of the result.
  virtual absl::StatusOr<wire::ModuleLoaded> LoadModule(uint64_t module, UniqueFd object,
                                                        const wire::LoadModule& load) = 0;
  virtual absl::Status UnloadModule(uint64_t module) = 0;

  // Stores steps that GraphLaunch tasks replay, with slots instead of arenas. Tasks fail if they
  // name a graph that is absent or whose steps cannot be prepared.
  virtual absl::Status LoadGraph(uint64_t graph, wire::Graph steps) = 0;
  // Queued tasks are not affected.
  virtual absl::Status UnloadGraph(uint64_t graph) = 0;

  virtual void Enqueue(const wire::Task& task) = 0;
  // Enqueues tasks of one packet in order. A device may do this with less work than Enqueue of
  // each.
  virtual void EnqueueAll(const google::protobuf::RepeatedPtrField<wire::Task>& tasks) {
    for (const wire::Task& task : tasks) Enqueue(task);
  }
  // Removes these tasks from the queue if the first has not begun, else none; answers with
  // TasksCancelled once. See wire::Cancel.
  virtual void Cancel(absl::Span<const uint64_t> sequences) = 0;
  virtual void Copy(const wire::Copy& copy) = 0;

  // Maps memory that the daemon shares with a client, for copies that name it. Returns soon: slow
  // steps run elsewhere, and those copies wait for them. Devices on host memory need none of this:
  // the daemon copies itself.
  virtual absl::Status MapRegion(uint64_t region, uint64_t size, UniqueFd fd) {
    return absl::UnimplementedError("regions on this kind of device");
  }
  virtual absl::Status UnmapRegion(uint64_t region) {
    return absl::UnimplementedError("regions on this kind of device");
  }

  // Waits until everything enqueued has completed.
  virtual void Drain() = 0;
};

}  // namespace stride::worker
