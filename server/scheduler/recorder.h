#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "google/protobuf/message_lite.h"
#include "server/base/ids.h"
#include "server/base/stripe.h"
#include "server/keeper/keeper.h"
#include "server/recovery/journal.h"
#include "server/recovery/key.h"
#include "server/session/catalogue.h"
#include "server/store/buffer.h"

namespace stride::broker {
class Worker;
}

namespace stride::recovery {
class DispatchRecord;
}

namespace stride::scheduler {

struct Core;
struct Lane;
struct Task;
struct Replay;
class DeadRecords;

// Writes the books. Whoever changes something that must outlive the daemon says so here; what was
// changed in one section of the engine's lock becomes one batch of the journal: at the section's
// end, before any callback or answer leaves (Locked), and before anything is done that cannot be
// undone: a packet to a worker, another use of a block of memory. So a daemon that starts in this
// one's place finds what the world was told, and nothing that never was.
//
// What is recorded: sessions, arrays, arenas, workers, jobs, modules; the buffers and unfinished
// tasks on which an array in the catalogue depends. The rest belongs to calls, which end with the
// daemon.
//
// Without a journal (nothing keeps it) every method returns at once. Caller has the stripe of the
// tenant whose things they are, or all where that is said, and no lock where that is said. The
// journal is one for all: what a stripe's section changed waits in a part of its own until Commit,
// which has a lock for the writing.
class Recorder : public session::Catalogue::Observer {
 public:
  explicit Recorder(Core* core);
  ~Recorder() override;

  // Before anything else. `keeper` must outlive the recorder. Ids go on above `last_id`.
  void Start(keeper::Keeper* keeper, std::unique_ptr<recovery::Journal> journal, uint64_t last_id);
  // Nothing that happens from here on is meant to be found by a successor.
  void Stop();
  bool on() const { return on_.load(std::memory_order_relaxed); }  // any thread
  recovery::Journal* journal() { return journal_.get(); }

  void Commit() {
    if (started_) WriteChanges();
  }

  // --- the catalogue's; of sessions with all ---
  void Added(session::Session& session) override;
  void Removed(session::Session& session) override;
  void Added(const std::shared_ptr<session::Array>& array) override;
  void Removed(session::Array& array) override;

  // Something of it is not as it was when it was added.
  void Changed(const std::shared_ptr<session::Array>& array);

  // The task is about to enter its buffers' order: decides whether it is recorded.
  void Accepted(const std::shared_ptr<Task>& task);
  // It was sent, taken back, or has ended.
  void Changed(Task& task);

  // A task that an earlier daemon had sent waits again. Caller has all.
  void TakenBack(uint64_t task);

  // Has the keeper take an arena; any thread. It may be used once this is OK.
  absl::Status StoreArena(const store::Arena& arena);
  // Caller has all, as for what follows.
  void Added(const store::Arena& arena, const Lane& lane);
  void Removed(const store::Arena& arena);

  // Has the keeper take what tells of a worker after our death: its status page and its process.
  // Any thread. The id of its record; 0 without a journal.
  uint64_t StoreWorker(broker::Worker& worker);
  void WorkerAdopted(uint64_t record, const Lane& lane);
  void WorkerGone(uint64_t record);

  // Jobs and modules, which know when they change.
  uint64_t NewId() { return ++last_id_; }  // any thread
  void Set(recovery::Kind kind, uint64_t id, const google::protobuf::MessageLite& record);
  void Erase(recovery::Kind kind, uint64_t id);
  // One that an earlier daemon recorded: its record goes with it.
  void Adopt(Replay& replay, uint64_t record);

  void RecordBuffer(const std::shared_ptr<store::Buffer>& buffer);

 private:
  struct Scratch;
  // What was changed in a section of one stripe.
  struct Part {
    std::vector<std::shared_ptr<session::Array>> arrays;
    std::vector<std::shared_ptr<Task>> tasks;
    std::vector<std::shared_ptr<Replay>> replays;  // new
    std::vector<uint64_t> erased;                  // keys
  };
  Part& OwnPart();
  void WriteChanges();
  void WriteChanges(int stripe);
  void WriteChanges(Part& part);
  void RecordTask(const std::shared_ptr<Task>& task);
  void Write(const session::Array& array);
  void Write(store::Buffer& buffer);
  void Write(Task& task);
  void WriteBody(const Task& task);
  void Write(const Replay& replay);
  static void FillDispatch(const Task& task, recovery::DispatchRecord* record);
  void WriteResult(const Task& task);
  void Broken(const absl::Status& status);

  Core* const core_;
  bool started_ = false;
  std::atomic<bool> on_{false};
  const std::unique_ptr<Scratch> scratch_;
  keeper::Keeper* keeper_ = nullptr;
  // While a batch is written. Taken under the engine's locks.
  absl::Mutex mutex_;
  std::unique_ptr<recovery::Journal> journal_;
  std::atomic<uint64_t> last_id_{0};
  std::array<Part, kNumStripes> parts_;  // each guarded by its stripe
  Part of_all_;                          // of sections of all
  const std::shared_ptr<DeadRecords> dead_replays_;
  std::vector<std::string> removals_;  // descriptors of no use after the commit
};

}  // namespace stride::scheduler
