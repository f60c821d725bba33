#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/message_lite.h"
#include "server/base/ids.h"
#include "server/base/stripe.h"
#include "server/keeper/keeper.h"
#include "server/recovery/journals.h"
#include "server/recovery/key.h"
#include "server/session/catalogue.h"
#include "server/store/buffer.h"
#include "server/tenant/transaction.h"

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
// changed of a partition's tenants in one transaction becomes one batch of their journal: at the
// transaction's end, before any callback or answer leaves, and before anything is done that cannot
// be undone: a packet to a worker, another use of a block of memory. So a daemon that starts in
// this one's place finds what the world was told, and nothing that never was.
//
// What is recorded: sessions, arrays, arenas, workers, jobs, modules; the buffers and unfinished
// tasks on which an array in the catalogue depends. The rest belongs to calls, which end with the
// daemon.
//
// Without journals (nothing keeps them) every method returns at once. State of
// a tenant goes to the journal of its partition, and nothing there depends on another journal. A
// global transaction is a batch in each, one after the other. A function without a transaction is
// for any thread.
class Recorder : public session::Catalogue::Observer {
 public:
  explicit Recorder(Core* core);
  ~Recorder() override;

  // Before anything else. `keeper` must outlive the recorder. Ids go on above `last_id`.
  void Start(keeper::Keeper* keeper, std::unique_ptr<recovery::Journals> journals,
             uint64_t last_id);
  // Nothing that happens from here on is meant to be found by a successor.
  void Stop(GlobalTransaction& transaction);
  bool on() const { return on_.load(std::memory_order_relaxed); }  // any thread
  // A daemon survived the recovery from them.
  void Recovered(GlobalTransaction& transaction);
  // Until the second, a successor is to read the disk anew, whatever else the journals have.
  void ReadingDisk(GlobalTransaction& transaction);
  void DiskRead(GlobalTransaction& transaction) { disk_read_ = true; }

  void Commit(TenantTransaction& transaction) {
    if (started_) WriteChanges(transaction);
  }

  // Gives back memory that the partition's journal needs no more.
  void Trim(TenantTransaction& transaction, int partition);

  // --- the catalogue's; of sessions with all ---
  void Added(GlobalTransaction& transaction, session::Session& session) override;
  void Removed(GlobalTransaction& transaction, session::Session& session) override;
  void Added(TenantTransaction& transaction, const std::shared_ptr<session::Array>& array) override;
  void Removed(TenantTransaction& transaction, session::Array& array) override;

  // Something of it is not as it was when it was added.
  void Changed(TenantTransaction& transaction, const std::shared_ptr<session::Array>& array);

  // The task is about to enter its buffers' order: decides whether it is recorded.
  void Accepted(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  // It was sent, taken back, or has ended.
  void Changed(TenantTransaction& transaction, Task& task);

  // A task that an earlier daemon had sent waits again.
  void TakenBack(GlobalTransaction& transaction, const Task& task);

  // Has the keeper take an arena; any thread. It may be used once this is OK.
  absl::Status StoreArena(const store::Arena& arena);
  void Added(GlobalTransaction& transaction, const store::Arena& arena, const Lane& lane);
  void Removed(GlobalTransaction& transaction, const store::Arena& arena, const Lane& lane);

  // Has the keeper take what tells of a worker after our death: its status page and its process.
  // Any thread. The id of its record; 0 without a journal.
  uint64_t StoreWorker(broker::Worker& worker);
  void WorkerAdopted(GlobalTransaction& transaction, uint64_t record, const Lane& lane);
  void WorkerGone(GlobalTransaction& transaction, const TenantId& tenant, uint64_t record);

  // Jobs and modules, which know when they change.
  uint64_t NewId() { return ++last_id_; }  // any thread
  void Set(TenantTransaction& transaction, const TenantId& tenant, recovery::Kind kind, uint64_t id,
           const google::protobuf::MessageLite& record);
  void Erase(TenantTransaction& transaction, const TenantId& tenant, recovery::Kind kind,
             uint64_t id);
  // Erases a record whose tenant is no longer known.
  void EraseWherever(GlobalTransaction& transaction, recovery::Kind kind, uint64_t id);
  // One that an earlier daemon recorded: its record goes with it.
  void Adopt(TenantTransaction& transaction, const TenantId& tenant, Replay& replay,
             uint64_t record);

  void RecordBuffer(TenantTransaction& transaction, const std::shared_ptr<store::Buffer>& buffer);

 private:
  struct Scratch;
  struct alignas(64) Part {
    recovery::Journal* journal = nullptr;
    // What the transaction has changed so far.
    std::vector<std::shared_ptr<session::Array>> arrays;
    std::vector<std::shared_ptr<Task>> tasks;
    std::vector<std::shared_ptr<Replay>> replays;  // new
    std::shared_ptr<DeadRecords> dead_replays;
    std::unique_ptr<Scratch> scratch;
  };
  Part& PartOf(TenantTransaction& transaction, const TenantId& tenant);
  void WriteChanges(TenantTransaction& transaction);
  void WriteChanges(TenantTransaction& transaction, int partition);
  void WriteBuffers(int partition, Part& part);
  void WriteCommon(GlobalTransaction& transaction);
  void RecordTask(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  void Write(const session::Array& array, Part& part);
  static void Write(store::Buffer& buffer, Part& part);
  void Write(Task& task, Part& part);
  void WriteBody(const Task& task, Part& part);
  static void FillDispatch(const Task& task, recovery::DispatchRecord* record);
  void WriteResult(const Task& task, Part& part);
  void Broken(const absl::Status& status);

  Core* const core_;
  bool started_ = false;
  std::atomic<bool> on_{false};
  keeper::Keeper* keeper_ = nullptr;
  std::unique_ptr<recovery::Journals> journals_;
  std::atomic<uint64_t> last_id_{0};
  PerPartition<Part> parts_;
  // Changes of a global transaction.
  uint64_t touched_ = 0;               // whose tenants' things it changed, one bit each
  std::vector<std::string> removals_;  // descriptors of no use after the commit
  bool disk_read_ = false;
};

}  // namespace stride::scheduler
