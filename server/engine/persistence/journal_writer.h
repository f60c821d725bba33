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
#include "server/base/tenant_partition.h"
#include "server/fd_store/fd_store.h"
#include "server/recovery/journals.h"
#include "server/recovery/key.h"
#include "server/session/catalogue.h"
#include "server/store/buffer.h"
#include "server/tenant/transaction.h"

namespace stride::broker {
class Worker;
}

namespace stride::engine {

struct Core;
struct DeviceQueue;
struct Task;
struct ProgramLaunch;
class DeadRecords;

// Writes the journals. Code that changes state which must outlive the daemon calls the journal
// writer. The changes of one transaction become one batch of the partition's journal at its end.
// The batch is written before any callback, answer or packet to a worker is sent, and before a
// block of memory is reused. So the next daemon finds every state that a client or worker has
// observed, and no other.
//
// The journals contain sessions, arrays, arenas, workers, jobs, modules, functions and programs.
// They contain the buffers and unfinished tasks on which an array in the catalogue depends. All
// other state belongs to calls, which end with the daemon.
//
// Without an FdStore there are no journals, and every method returns at once. State of a tenant
// goes to the journal of its partition, which depends on no other journal. A global transaction
// becomes a batch in each, one after the other. Any thread may call a function that takes no
// transaction.
class JournalWriter : public session::Catalogue::Observer {
 public:
  // Becomes the core's journal writer.
  explicit JournalWriter(Core* core);
  ~JournalWriter() override;

  // Called before any other method. `fd_store` must outlive the journal writer. New
  // ids begin above `last_id`.
  void Start(fd_store::FdStore* fd_store, std::unique_ptr<recovery::Journals> journals,
             uint64_t last_id);
  // Ends recording: the next daemon finds no later change.
  void Stop(GlobalTransaction& transaction);
  bool on() const { return on_.load(std::memory_order_relaxed); }  // any thread
  // This daemon survived the recovery from the journals.
  void Recovered(GlobalTransaction& transaction);
  // Everything is restored. If the daemon ends before, the next one finds no journals that this
  // daemon began, and reads the disk again.
  void Complete(GlobalTransaction& transaction);

  void Commit(TenantTransaction& transaction) {
    if (started_) WriteChanges(transaction);
  }

  // Releases memory that the partition's journal no longer needs.
  void Trim(TenantTransaction& transaction, int partition);

  // --- for the catalogue ---
  void Added(GlobalTransaction& transaction, session::Session& session) override;
  void Removed(GlobalTransaction& transaction, session::Session& session) override;
  void Added(TenantTransaction& transaction, const std::shared_ptr<session::Array>& array) override;
  void Removed(TenantTransaction& transaction, session::Array& array) override;

  // The array differs from its record.
  void Changed(TenantTransaction& transaction, const std::shared_ptr<session::Array>& array);

  // The task is about to enter its buffers' order. Records it if it writes a recorded buffer.
  void Accepted(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  // The task was sent, was taken back, or has ended.
  void Changed(TenantTransaction& transaction, Task& task);

  // Records that a task which an earlier daemon had sent is no longer dispatched.
  void TakenBack(GlobalTransaction& transaction, const Task& task);

  // Stores an arena in the FdStore. The arena may be used only after OK.
  absl::Status StoreArena(const store::Arena& arena);
  void Added(GlobalTransaction& transaction, const store::Arena& arena, const DeviceQueue& queue);
  void Removed(GlobalTransaction& transaction, const store::Arena& arena, const DeviceQueue& queue);

  // Stores a worker's status page and process in the FdStore, for the next daemon. Returns the id
  // of its record; 0 without a journal.
  uint64_t StoreWorker(broker::Worker& worker);
  void WorkerAdopted(GlobalTransaction& transaction, uint64_t record, const DeviceQueue& queue);
  void WorkerGone(GlobalTransaction& transaction, const TenantId& tenant, uint64_t record);

  // For resources that report their changes themselves, such as jobs and modules.
  uint64_t NewId() { return ++last_id_; }  // any thread
  void Set(TenantTransaction& transaction, const TenantId& tenant, recovery::Kind kind, uint64_t id,
           const google::protobuf::MessageLite& record);
  void Erase(TenantTransaction& transaction, const TenantId& tenant, recovery::Kind kind,
             uint64_t id);
  // Erases a record whose tenant is no longer known.
  void EraseWherever(GlobalTransaction& transaction, recovery::Kind kind, uint64_t id);
  // Ties the record to the launch: when the launch ends, its record is erased.
  void Adopt(TenantTransaction& transaction, const TenantId& tenant, ProgramLaunch& program_launch,
             uint64_t record);

  void RecordBuffer(TenantTransaction& transaction, const std::shared_ptr<store::Buffer>& buffer);

 private:
  struct Scratch;
  struct alignas(64) Part {
    recovery::Journal* journal = nullptr;
    // Changes of the transaction so far.
    std::vector<std::shared_ptr<session::Array>> arrays;
    std::vector<std::shared_ptr<Task>> tasks;
    std::vector<std::shared_ptr<ProgramLaunch>> program_launches;  // new
    std::shared_ptr<DeadRecords> dead_launches;
    std::unique_ptr<Scratch> scratch;
  };
  Part& PartOf(TenantTransaction& transaction, const TenantId& tenant);
  void WriteChanges(TenantTransaction& transaction);
  void WriteChanges(TenantTransaction& transaction, int partition);
  void WriteBuffers(int partition, Part& part);
  void RecordTask(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  void Write(const session::Array& array, Part& part);
  static void Write(store::Buffer& buffer, Part& part);
  void Write(Task& task, Part& part);
  void Broken(const absl::Status& status);

  Core* const core_;
  bool started_ = false;
  std::atomic<bool> on_{false};
  fd_store::FdStore* fd_store_ = nullptr;
  std::unique_ptr<recovery::Journals> journals_;
  std::atomic<uint64_t> last_id_{0};
  PerPartition<Part> parts_;
  // Changes of a global transaction.
  uint64_t touched_ = 0;               // partitions that it changed, one bit each
  std::vector<std::string> removals_;  // descriptors to remove after the commit
};

}  // namespace stride::engine
