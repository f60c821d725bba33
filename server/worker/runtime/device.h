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

// Where a device reports what has ended. Implemented by the command loop; may be called from any
// thread; does not block on the daemon for long.
class Completions {
 public:
  virtual ~Completions() = default;
  // In submission order. `run_seconds` as the device measured it. `more`: the next completion
  // follows within microseconds; the report may wait for it.
  virtual void TaskDone(uint64_t sequence, const absl::Status& status, double run_seconds,
                        bool more) = 0;
  // The answer to Device::Cancel; before TaskDone of any task that was taken out.
  virtual void TasksCancelled(uint64_t sequence, bool taken) = 0;
  virtual void CopyDone(uint64_t id, const absl::Status& status) = 0;
  // Text that the kernels of a task printed. Before TaskDone of that task; bounded by PrintBudget.
  virtual void Printed(uint64_t sequence, const PrintedText& printed) = 0;
  // The process cannot go on: the report is sent to the daemon and the process exits with code 1.
  // Does not return. `context_lost`: the device itself ended the context, so that nothing of this
  // process runs there any more.
  [[noreturn]] virtual void Fatal(uint64_t sequence, const absl::Status& status,
                                  bool context_lost) = 0;
};

// A device as the command loop drives it: one tenant, one device, one process. What an implementer
// owes:
//  1. All methods are called from the command loop's one thread, in the order in which the daemon
//     sent the commands. Completions come from any thread.
//  2. Enqueue and Copy return soon; tasks run in order of submission (at least as far as results
//     show); copies run in order within each direction, beside the tasks.
//  3. Every enqueued task and copy gets exactly one completion, or the process ends through Fatal
//     or a signal.
//  4. StatusPage::started_sequence is stored before a task may touch memory, completed_sequence
//     after it ended, before TaskDone; of one that failed or was taken out, MarkFailed or
//     MarkTakenOut before that.
//  5. Nothing that a plan or a kernel says may touch memory outside mapped arenas, staging and
//     scratch, as far as the hardware can enforce it: offsets and extents of operands are checked
//     against the arena before a launch (kernels' own arithmetic is what the process boundary is
//     for).
//  6. A failure that leaves the device usable is the task's status: FAILED_PRECONDITION for a fault
//     of the kernel, RESOURCE_EXHAUSTED for memory, UNIMPLEMENTED naming the feature for what this
//     device kind cannot do. Others are INTERNAL.
//  7. Enqueue must not wait for tasks to end, as far as the device allows, so that a Cancel behind
//     it is read while they are queued. TaskGate decides between Begin and Cancel.
class Device {
 public:
  virtual ~Device() = default;

  struct Environment {
    int device_index = 0;
    int num_threads = 0;           // CPU devices; 0: all
    std::byte* staging = nullptr;  // shared with the daemon; lives as long as the process
    uint64_t staging_bytes = 0;
    wire::StatusPage* status_page = nullptr;
    Completions* completions = nullptr;
    // The process's standard output is the device's, for what kernels print.
    bool owns_standard_output = false;
  };
  // First call. May take long (context creation); the process is a spare meanwhile.
  virtual absl::Status Start(const Environment& environment) = 0;

  // Makes and maps device memory of `size` bytes (a multiple of the granularity), returning its
  // shareable descriptor. UNIMPLEMENTED for devices on host memory.
  virtual absl::StatusOr<UniqueFd> CreateArena(uint64_t arena, uint64_t size) = 0;
  virtual absl::Status MapArena(uint64_t arena, uint64_t size, UniqueFd fd) = 0;
  // Host memory that the device uses in place: wire::MapHostArena.
  virtual absl::Status MapHostArena(uint64_t arena, uint64_t size, UniqueFd fd) = 0;
  virtual absl::Status UnmapArena(uint64_t arena) = 0;
  // An arena of another device of this kind, to be read: by elementwise tasks, as an input, and,
  // unless arenas are host memory, by copies (wire::Copy.source_arena). Other tasks that name it
  // fail. UnmapArena ends it too.
  virtual absl::Status MapPeerArena(uint64_t /*arena*/, uint64_t /*size*/, UniqueFd /*fd*/) {
    return absl::UnimplementedError("this device reads no other device's memory");
  }

  // `object` is valid for the call only. Of the answer the caller fills in `module` and `status`.
  virtual absl::StatusOr<wire::ModuleLoaded> LoadModule(uint64_t module, UniqueFd object,
                                                        const wire::LoadModule& load) = 0;
  virtual absl::Status UnloadModule(uint64_t module) = 0;

  // Steps that GraphLaunch tasks replay, with slots in the place of arenas. One that the device
  // does not have, or whose steps cannot be had, fails the tasks that name it.
  virtual absl::Status LoadGraph(uint64_t graph, wire::Graph steps) = 0;
  // Tasks in the queue are not touched.
  virtual absl::Status UnloadGraph(uint64_t graph) = 0;

  virtual void Enqueue(const wire::Task& task) = 0;
  // What came together, in order: as Enqueue of each, which a device may do with less work.
  virtual void EnqueueAll(const google::protobuf::RepeatedPtrField<wire::Task>& tasks) {
    for (const wire::Task& task : tasks) Enqueue(task);
  }
  // Takes these tasks out of the queue when the first of them has not begun, else none; answers
  // with TasksCancelled once. See wire::Cancel.
  virtual void Cancel(absl::Span<const uint64_t> sequences) = 0;
  virtual void Copy(const wire::Copy& copy) = 0;

  // Memory that the daemon shares with a client, for copies that name it. Returns soon: what takes
  // long is done elsewhere, and those copies wait for it. Devices on host memory need none of this:
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
