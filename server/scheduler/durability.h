#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/steady_time.h"
#include "server/durable/store.h"
#include "server/scheduler/core.h"
#include "server/scheduler/scheduler.h"
#include "server/session/catalogue.h"
#include "stride/v1/job_service.pb.h"

namespace google::protobuf {
class MessageLite;
}

namespace stride::recovery {
class DurableJobRecord;
}

namespace stride::scheduler {

// A job that is to be on disk.
struct AcceptedJob {
  TenantId tenant;
  std::string session;
  std::string id, request_id;
  uint64_t row = 0;  // of one that is accepted again after a reboot
  // By SetJob, which takes long for many operations; without a lock.
  std::string job;                                   // serialized, as it was asked for
  std::vector<std::pair<std::string, bool>> arrays;  // each named one, and whether it makes it
  void SetJob(const v1::Job& asked);
};

// Which named arrays and jobs are on disk (durable/store.h), and which have to be written: for the
// day when the machine was off and no journal is left.
//
// A named array is written when it is ready and, when it has changed, anew, as a version that
// it had between two operations. A thread of its own reads it as a fetch does, so what would
// change it waits for that time. An array that keeps changing is written for a tenth of the time.
//
// A job is on disk before its CreateJob is answered, and as ended once its named results are. After
// a reboot an unfinished one runs again from its request. That would be wrong when what is kept of
// arrays is already changed by it, or was changed after it had read it: so whoever changes a
// kept array, and whoever has read it before, is noted in the same transaction as the new version.
//
// Thread-safe where a function takes no transaction.
class Durability : public session::Catalogue::Observer {
 public:
  // All outlive it.
  Durability(Core* core, Scheduler* scheduler, durable::DurableStore* store);
  ~Durability() override;

  // --- at the start, in this order; the first two instead of each other ---
  // Nothing is left of an earlier daemon but what is on disk: arrays as they were kept, their bytes
  // to be read by a thread. Returns the jobs, oldest first.
  std::vector<durable::JobRow> RestoreArrays(GlobalTransaction& transaction);
  // All was restored from a journal, with the ids of what is on disk: lets go what is no more.
  void Reconcile(GlobalTransaction& transaction);
  // Writes from now on, and reads what RestoreArrays and RestoreLoads found. The lock must not be
  // held.
  void Start();
  // Nothing that happens from here on is written; closes the store. The caller has no transaction.
  void Stop();

  // A journal's arrays whose bytes were still being read from disk: reads them anew. Before any
  // task that uses them is restored.
  void RestoreLoads(GlobalTransaction& transaction);

  // --- the catalogue's ---
  void Added(GlobalTransaction&, session::Session&) override {}
  void Removed(GlobalTransaction&, session::Session&) override {}
  void Added(TenantTransaction& transaction, const std::shared_ptr<session::Array>& array) override;
  void Removed(TenantTransaction& transaction, session::Array& array) override;
  // Something but its content has changed.
  void Changed(TenantTransaction& transaction, const session::Array& array);

  // A task is about to enter its buffers' order: in the journal, what it may change counts as not
  // kept from now on, since a successor does not see it end.
  void Enqueued(TenantTransaction& transaction, const Task& task);
  // A task has ended; it still has its uses. `begun`: it may have changed what it writes.
  void Ended(TenantTransaction& transaction, const Task& task, bool begun);

  // --- jobs; `session` is the job's own and names it here ---
  // The id of its row; the number to wait for goes to `number`. 0: it is not kept.
  uint64_t Accepted(GlobalTransaction& transaction, const AcceptedJob& job, uint64_t* number);
  // One that a journal had; false: it is not on disk. `begun`: it may have used arrays.
  bool Restored(GlobalTransaction& transaction, const std::string& session, uint64_t row,
                bool begun);
  // Whether it is on disk as one that has ended; at the start.
  bool HasEnded(GlobalTransaction& transaction, uint64_t row) const;
  // The number to wait for; 0: none.
  uint64_t CancelRequested(GlobalTransaction& transaction, uint64_t row);
  // `end`: EndOf the job.
  void JobEnded(GlobalTransaction& transaction, const std::string& session, uint64_t row,
                std::string end, const std::vector<std::shared_ptr<session::Array>>& named_results);
  static std::string EndOf(const v1::Job& job);  // serialized; without a lock
  void Forgotten(GlobalTransaction& transaction, const std::string& session, uint64_t row);
  // Whether an accepted job's inputs are what they were; lets go what it had made, which it makes
  // anew. DATA_LOSS otherwise.
  absl::Status PrepareRerun(GlobalTransaction& transaction, const TenantId& tenant,
                            const recovery::DurableJobRecord& record);

  // --- functions and programs ---
  // The id of its row; the number to wait for goes to `number`. 0: it is not kept.
  uint64_t Defined(TenantTransaction& transaction, durable::DefinitionRow::Kind kind,
                   const google::protobuf::MessageLite& record, uint64_t* number);
  // The number to wait for; 0: none.
  uint64_t Undefined(TenantTransaction& transaction, uint64_t row);
  // One that a journal had.
  void RestoredDefinition(GlobalTransaction& transaction, uint64_t row) {
    definition_rows_.insert(row);
  }
  // What was found on disk, in the order of their making; until Start.
  const std::map<uint64_t, durable::DefinitionRow>& definitions() const {
    return rows_.definitions;
  }

  // Waits until a change is on disk, within reason; the caller has no transaction.
  void Await(uint64_t number) const;
  // The number of what was asked for last.
  uint64_t last() const { return store_->last(); }
  // Until everything is on disk. The caller has no transaction.
  void Flush(SteadyTime deadline);

 private:
  // A buffer with names.
  struct Name {
    std::weak_ptr<session::Array> array;
    bool on_disk = false;  // has a row, or is about to
  };
  struct Content {
    std::weak_ptr<store::Buffer> buffer;
    std::map<uint64_t, Name> names;  // by row
    uint64_t file = 0;               // what is on disk, of whatever version; 0: nothing
    int64_t file_bytes = 0;
    uint64_t num_changes = 0;  // of the content
    uint64_t num_kept = 0;     // of these, on disk
    bool rows_changed = false;
    bool no_room = false;
    bool due = false;      // stands in due_
    bool damaged = false;  // the file is not what was written; it stays until its arrays go
    SteadyTime next_write = SteadyTime::InfinitePast();  // not before
    std::string made_by;             // session of the unfinished job that makes it
    std::set<std::string> users;     // unfinished jobs that have used it so far
    std::set<std::string> outdated;  // of these, before a change that is not on disk
  };
  using ContentPtr = std::shared_ptr<Content>;
  struct KeptJob {
    uint64_t row = 0;
    std::vector<std::weak_ptr<Content>> used;
    bool ended = false;
    std::string end;
    std::vector<std::pair<std::weak_ptr<Content>, uint64_t>> awaited;  // and how many changes of it
  };
  struct Load {
    ContentPtr content;
    std::shared_ptr<store::Buffer> buffer;
    std::shared_ptr<Task> task;
    durable::ContentRow row;
  };
  struct Writing;

  ContentPtr Find(const store::Buffer* buffer) const;
  void BeginLoad(GlobalTransaction& transaction, const ContentPtr& content,
                 const std::shared_ptr<store::Buffer>& buffer, const durable::ContentRow& row);
  bool RestoreArray(GlobalTransaction& transaction, const durable::ArrayRow& row,
                    std::map<uint64_t, std::shared_ptr<store::Buffer>>* buffers);
  void Due(const ContentPtr& content, SteadyTime when);
  durable::ArrayRow RowOf(const session::Array& array, uint64_t content) const;
  void AddRows(Content& content, uint64_t file, durable::Change* change) const;
  void AddEnds(durable::Change* change);
  void LetGo(KeptJob& job, const std::string& session);
  void NoRoom(const ContentPtr& content, const store::Buffer& buffer);
  void TryNoRoomAgain();
  void Failed(Content& content, store::Buffer& buffer);

  void WriteLoop();
  ContentPtr NextDue() ABSL_LOCKS_EXCLUDED(mutex_);
  void Write(const ContentPtr& content);
  bool BeginWrite(const ContentPtr& content, Writing* writing);
  absl::Status CopyToFile(Writing* writing);
  void EndWrite(Writing& writing, const absl::Status& status);
  void ReadLoop();
  absl::Status ReadFile(const Load& load);
  void EndLoad(const Load& load, const absl::Status& status);
  void NoteRenamed(uint64_t row, const recovery::DurableJobRecord& now);
  std::vector<uint64_t> RowsOf(const std::set<std::string>& sessions) const;
  int DeviceFor(GlobalTransaction& transaction, const std::string& wanted);

  Core* const core_;
  Scheduler* const scheduler_;
  durable::DurableStore* const store_;
  durable::Rows rows_;  // as found, until Start

  // Transactions guard it.
  bool stopped_ = false;
  absl::flat_hash_map<const store::Buffer*, ContentPtr> contents_;
  std::map<std::string, KeptJob> jobs_;   // by session, until they are written as ended
  std::set<std::string> ended_;           // of these
  std::set<uint64_t> job_rows_;           // that are in use; until Start
  std::set<uint64_t> definition_rows_;    // likewise
  std::map<uint64_t, uint64_t> renamed_;  // rows of what jobs make anew after a reboot
  std::vector<std::weak_ptr<Content>> no_room_;
  std::vector<Load> loads_;
  SteadyTime write_failure_told_ = SteadyTime::InfinitePast();

  mutable std::atomic<int64_t> not_written_told_{0};  // seconds since 1970
  absl::Mutex mutex_;                                 // taken inside a transaction
  std::multimap<SteadyTime, ContentPtr> due_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool hurry_ ABSL_GUARDED_BY(mutex_) = false;  // nothing waits for its time
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread writer_, reader_;
};

}  // namespace stride::scheduler
