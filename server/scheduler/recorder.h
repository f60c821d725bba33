#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/message_lite.h"
#include "server/base/ids.h"
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
// Without a journal (nothing keeps it) every method returns at once. Caller holds the engine's
// lock, except where said.
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

  // --- the catalogue's ---
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

  // A task that an earlier daemon had sent waits again.
  void TakenBack(uint64_t task);

  // Has the keeper take an arena; any thread. It may be used once this is OK.
  absl::Status StoreArena(const store::Arena& arena);
  void Added(const store::Arena& arena, const Lane& lane);
  void Removed(const store::Arena& arena);

  // Has the keeper take what tells of a worker after our death: its status page and its process.
  // Any thread. The id of its record; 0 without a journal.
  uint64_t StoreWorker(broker::Worker& worker);
  void WorkerAdopted(uint64_t record, const Lane& lane);
  void WorkerGone(uint64_t record);

  // Jobs and modules, which know when they change.
  uint64_t NewId() { return ++last_id_; }
  void Set(recovery::Kind kind, uint64_t id, const google::protobuf::MessageLite& record);
  void Erase(recovery::Kind kind, uint64_t id);
  // One that an earlier daemon recorded: its record goes with it.
  void Adopt(Replay& replay, uint64_t record);

  void RecordBuffer(const std::shared_ptr<store::Buffer>& buffer);

 private:
  void WriteChanges();
  void RecordTask(const std::shared_ptr<Task>& task);
  void Write(const session::Array& array);
  void Write(store::Buffer& buffer);
  void Write(Task& task);
  void WriteBody(const Task& task);
  void Record(Replay& replay);
  static void FillDispatch(const Task& task, recovery::DispatchRecord* record);
  void WriteResult(const Task& task);
  void Broken(const absl::Status& status);

  struct Scratch;

  Core* const core_;
  bool started_ = false;
  std::atomic<bool> on_{false};
  const std::unique_ptr<Scratch> scratch_;
  keeper::Keeper* keeper_ = nullptr;
  std::unique_ptr<recovery::Journal> journal_;
  std::atomic<uint64_t> last_id_{0};
  std::vector<std::shared_ptr<session::Array>> arrays_;  // changed
  std::vector<std::shared_ptr<Task>> tasks_;             // changed
  const std::shared_ptr<DeadRecords> dead_replays_;
  std::vector<std::string> removals_;  // descriptors of no use after the commit
};

}  // namespace stride::scheduler
