#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/base/memory_file.h"
#include "server/base/steady_time.h"
#include "server/broker/child_process.h"
#include "server/broker/error_relay.h"
#include "server/broker/event_ledger.h"
#include "server/broker/outbox.h"
#include "server/broker/sandbox.h"
#include "server/broker/spawner.h"
#include "server/broker/wakeup.h"
#include "server/broker/worker.h"
#include "server/broker/worker_list.h"
#include "server/wire/channel.h"
#include "server/wire/status_page.h"

namespace stride::broker {

struct WorkerOptions {
  std::string executable;
  wire::DeviceDescription device;
  int num_threads = 0;  // CPU devices; 0: all
  uint64_t staging_bytes = 0;
  uint64_t slot_bytes = 0;
  absl::Duration start_timeout;
  // Time without a turn of the command loop after which the worker counts as hung. The driver's
  // translation of a large module, the longest command, is far shorter.
  absl::Duration silence_timeout = absl::Minutes(2);
  SandboxPolicy sandbox;
  std::function<void(const std::string&)> log;  // see BrokerOptions
  // Called once on the reader thread when the worker is dead; alive() is false by then.
  std::function<void()> gone;
};

// A worker process and the thread that reads its messages. The thread ends once the process is
// reaped, `died` was called and the worker has no reference left (or the broker retires it), so
// that every callback can run on it.
class WorkerProcess : public Worker, public ListedWorker {
 public:
  // Blocks until the process is ready for commands. The release of the returned handle kills the
  // process. `spawner` and `list` must outlive the reader thread: see WorkerList::EndAll.
  static absl::StatusOr<std::shared_ptr<Worker>> Start(WorkerOptions options, Spawner* spawner,
                                                       WorkerList* list);

  uint64_t id() const override { return id_; }
  pid_t pid() const override { return pid_; }
  const wire::DeviceDescription& device() const override { return options_.device; }
  bool alive() const override;
  int status_page() const override { return page_file_.get(); }
  int process() const override { return child_.descriptor(); }
  void Adopt(WorkerCallbacks callbacks) override;
  absl::StatusOr<UniqueFd> CreateArena(uint64_t arena, uint64_t size) override;
  absl::Status MapArena(uint64_t arena, uint64_t size, int fd) override;
  absl::Status MapHostArena(uint64_t arena, uint64_t size, int fd) override;
  absl::Status UnmapArena(uint64_t arena) override;
  absl::Status LoadModule(const CompiledModule& module, LoadDone loaded) override;
  absl::Status UnloadModule(uint64_t module) override;
  absl::Status LoadGraph(uint64_t graph, const wire::Graph& steps) override;
  absl::Status UnloadGraph(uint64_t graph) override;
  absl::Status Submit(const wire::TaskPacket& tasks) override;
  absl::Status SubmitLater(const wire::TaskPacket& tasks) override;
  void Flush() override;
  absl::Status Cancel(absl::Span<const uint64_t> sequences) override;
  Progress progress() const override;
  absl::Status MapPeerArena(uint64_t arena, uint64_t size, int fd) override;
  void CopyFromPeer(uint64_t arena, uint64_t offset, uint64_t source_arena, uint64_t source_offset,
                    uint64_t size, std::function<void(absl::Status)> done) override;
  void Copy(bool to_device, uint64_t arena, uint64_t arena_offset, uint64_t staging_offset,
            uint64_t size, std::function<void(absl::Status)> done) override;
  StagingPool& staging() override { return staging_; }
  absl::Status MapRegion(uint64_t region, uint64_t size, int fd) override;
  absl::Status UnmapRegion(uint64_t region) override;
  void CopyRegion(bool to_device, uint64_t arena, uint64_t arena_offset, uint64_t region,
                  uint64_t region_offset, uint64_t size,
                  std::function<void(absl::Status)> done) override;
  void Kill(absl::Status cause) override;
  void Shutdown() override;

  // The broker ends: kills it and lets the reader thread end though the worker may still be held.
  void Retire() override;

 private:
  struct Parts {  // resources that Start makes before the object
    UniqueFd socket, staging_file, page_file, errors;
    Wakeup wakeup;
    MemoryMap staging, page;
  };
  enum class State { kStarting, kReady, kDead };

  WorkerProcess(WorkerOptions options, Parts parts, ChildProcess child, WorkerList* list);
  struct ChildParts {
    UniqueFd socket, standard_error;
  };
  static absl::StatusOr<Parts> MakeParts(const WorkerOptions& options, ChildParts* child);
  // Called when the last reference is released: kills the process, unless Shutdown was called.
  void Release();
  absl::Status SendStart(int staging_file, int page_file);
  absl::Status AwaitReady();
  absl::Status Send(const wire::Command& command, absl::Span<const int> descriptors = {});
  // Treats an error of the outbox as the worker's end.
  absl::Status SendOutbox();
  void SendCopy(wire::Command command, std::function<void(absl::Status)> done);
  absl::Status DeadStatus() const;
  void Condemn(absl::Status cause) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // --- on the reader thread ---
  void Run();
  void ReadUntilEnd();
  enum class Heard { kNothing, kEvent, kEnd };
  Heard ReadEvent();
  bool ReadEvents();  // false: no more events will come
  bool MoreResultsToCome() const;
  absl::Status Take(wire::Event& event, std::vector<UniqueFd> descriptors);
  absl::Status TakeStarted(const wire::Started& started);
  absl::Status TakeTasks(const wire::TasksDone& done);
  absl::Status TakePrinted(const wire::Printed& printed);
  absl::Status TakeCancelled(const wire::TasksCancelled& cancelled);
  absl::Status TakeCopies(const wire::CopiesDone& done);
  absl::Status TakeLoaded(const wire::ModuleLoaded& loaded);
  absl::Status TakeArena(const wire::ArenaCreated& created, std::vector<UniqueFd> descriptors);
  absl::Status TakeFatal(const wire::Fatal& fatal);
  void EnforceDeadline();
  // Ends a worker whose command loop no longer turns.
  void CheckHeartbeat();
  void DeliverResults();
  void Bury();
  void Reap();
  WorkerDeath JudgeDeath();
  absl::Status PendingStatus(const absl::Status& cause) const;
  void FailPending(const absl::Status& cause);
  void ServeTheDead(const WorkerDeath& death);
  absl::Duration UntilDeadline() const;

  // Used by the reader thread: the last heartbeat, the time of that check, and how long it has not
  // changed.
  uint64_t heartbeat_ = 0;
  SteadyTime heartbeat_check_ = SteadyTime::InfiniteFuture();
  absl::Duration silence_;

  const WorkerOptions options_;
  const uint64_t id_;
  const pid_t pid_;
  ChildProcess child_;  // reaped by the reader thread, which alone uses the next three
  ChildExit exit_{};
  bool reaped_ = false;
  bool context_lost_ = false;  // the worker reported it
  wire::Channel channel_;
  Outbox outbox_{&channel_};
  MemoryMap staging_map_;
  MemoryMap page_map_;
  UniqueFd page_file_;  // until the worker is adopted
  StagingPool staging_;
  ErrorRelay errors_;  // used by the reader thread
  WorkerList* const list_;
  Wakeup wakeup_;             // interrupts the reader thread's poll
  absl::Mutex submit_mutex_;  // keeps the packets of one Submit in the order of its sequences

  mutable absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kStarting;
  std::optional<absl::Status> cause_ ABSL_GUARDED_BY(mutex_);  // the first known cause
  uint64_t faulting_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  bool asked_to_end_ ABSL_GUARDED_BY(mutex_) = false;
  // latest time of its end
  SteadyTime deadline_ ABSL_GUARDED_BY(mutex_) = SteadyTime::InfiniteFuture();
  bool adopted_ ABSL_GUARDED_BY(mutex_) = false;
  // the last reference is released, or the broker ends
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
  bool serving_ ABSL_GUARDED_BY(mutex_) = true;  // the reader thread still runs deferred calls
  WorkerCallbacks callbacks_ ABSL_GUARDED_BY(mutex_);
  EventLedger ledger_ ABSL_GUARDED_BY(mutex_);
  std::vector<wire::TaskResult> results_ ABSL_GUARDED_BY(mutex_);  // not delivered yet
  std::deque<std::function<void()>> deferred_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace stride::broker
