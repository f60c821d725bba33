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
#include "server/engine/core/core.h"
#include "server/engine/persistence/durable_sink.h"
#include "server/engine/scheduling/scheduler.h"
#include "server/session/catalogue.h"

namespace google::protobuf {
class MessageLite;
}

namespace stride::recovery {
class DurableJobRecord;
}

namespace stride::engine {

// Keeps named arrays and jobs on disk (durable/store.h), for the case that the machine was off and
// no journal is left.
//
// A named array is written when it is ready, and again after a change, always as a version between
// two operations. A thread of its own reads the array as a fetch does, so writers wait for that
// time. An array that keeps changing is written for a tenth of the time.
//
// A job is on disk before its CreateJob is answered, and as ended once its named results are. After
// a reboot an unfinished job runs again from its request. Its result would be wrong if a saved
// array already has the job's changes, or was changed after the job had read it. So the write of a
// new version also records the jobs that changed the array, or had read it before.
//
// Thread-safe where a function takes no transaction.
class ArrayPersister : public session::Catalogue::Observer, public DurableSink {
 public:
  // All arguments must outlive it.
  ArrayPersister(Core* core, Scheduler* scheduler, durable::DurableStore* store);
  ~ArrayPersister() override;

  // --- at the start, while everything is restored (recovery.h); then Reconcile, then Start ---
  // Rows as found on disk. Only before Start.
  const durable::Rows& rows() const { return rows_; }
  int64_t used_bytes() const { return store_->used_bytes(); }
  // Reads the files of restored arrays whose current content is only there: the machine was off, or
  // their memory is gone. A thread does it after Start. Call before any task that uses them is
  // restored.
  void RestoreLoads(GlobalTransaction& transaction);
  // Erases rows that nothing restored refers to. `with_jobs`: also those of jobs.
  void Reconcile(GlobalTransaction& transaction, bool with_jobs);
  // Starts to write changes, and to read the bytes for RestoreLoads. The caller has no transaction.
  void Start();
  // Stops writing, and closes the store. Later changes are not kept. The caller has no transaction.
  void Stop();

  // --- session::Catalogue::Observer ---
  void Added(GlobalTransaction&, session::Session&) override {}
  void Removed(GlobalTransaction&, session::Session&) override {}
  void Added(TenantTransaction& transaction, const std::shared_ptr<session::Array>& array) override;
  void Removed(TenantTransaction& transaction, session::Array& array) override;
  // Notes a change of the array other than of its content.
  void Changed(TenantTransaction& transaction, const session::Array& array);

  // The journal counts the buffers that the task may change as not saved, since a successor does
  // not see the task end.
  void Enqueued(TenantTransaction& transaction, const Task& task) override;
  void Ended(TenantTransaction& transaction, const Task& task, bool begun) override;

  // --- jobs; `session`, the job's own, identifies it ---
  // `row`: of a job that is accepted again after a reboot; 0: none. `record`: from job_codec.h.
  // Returns the id of the job's row, and the number to wait for in `number`. 0: it is not kept.
  uint64_t Accepted(GlobalTransaction& transaction, const std::string& session, uint64_t row,
                    recovery::DurableJobRecord record, uint64_t* number);
  // Notes a job that a journal had. False: it is not on disk. `begun`: it may have used arrays.
  bool Restored(GlobalTransaction& transaction, const std::string& session, uint64_t row,
                bool begun);
  // Whether the row is of a job that has ended. Only before Start.
  bool HasEnded(GlobalTransaction& transaction, uint64_t row) const;
  // The number to wait for; 0: none.
  uint64_t CancelRequested(GlobalTransaction& transaction, uint64_t row);
  // `end`: a serialized v1::Job without its operations, which the job's record has.
  void JobEnded(GlobalTransaction& transaction, const std::string& session, uint64_t row,
                std::string end, const std::vector<std::shared_ptr<session::Array>>& named_results);
  void Forgotten(GlobalTransaction& transaction, const std::string& session, uint64_t row);
  // Checks that an accepted job's inputs are unchanged, then removes its earlier results, which it
  // makes again. DATA_LOSS: an input has changed or is gone.
  absl::Status PrepareRerun(GlobalTransaction& transaction, const TenantId& tenant,
                            const recovery::DurableJobRecord& record);

  // --- functions and programs ---
  uint64_t Defined(TenantTransaction& transaction, durable::DefinitionRow::Kind kind,
                   const google::protobuf::MessageLite& record, uint64_t* number) override;
  uint64_t Undefined(TenantTransaction& transaction, uint64_t row) override;
  void RestoredDefinition(GlobalTransaction& transaction, uint64_t row) override {
    definition_rows_.insert(row);
  }
  void Await(uint64_t number) const override;
  // The number of the latest change.
  uint64_t last() const { return store_->last(); }
  // Blocks until everything is on disk, or `deadline`. The caller has no transaction.
  void Flush(SteadyTime deadline);

 private:
  // A named array of the buffer.
  struct Name {
    std::weak_ptr<session::Array> array;
    bool on_disk = false;  // has a row, or is about to get one
  };
  struct Content {
    std::weak_ptr<store::Buffer> buffer;
    std::map<uint64_t, Name> names;  // by row
    uint64_t file = 0;               // the content on disk, of any version; 0: none
    int64_t file_bytes = 0;
    uint64_t num_changes = 0;  // changes of the content
    uint64_t num_kept = 0;     // changes that are on disk
    bool rows_changed = false;
    bool no_room = false;
    bool due = false;      // is in due_
    bool damaged = false;  // the file is not what was written; kept until its arrays are gone
    SteadyTime next_write = SteadyTime::InfinitePast();  // earliest time
    std::string made_by;             // session of the unfinished job that makes it
    std::set<std::string> users;     // unfinished jobs that have used it
    std::set<std::string> outdated;  // users from before a change that is not on disk
  };
  using ContentPtr = std::shared_ptr<Content>;
  struct KeptJob {
    uint64_t row = 0;
    std::vector<std::weak_ptr<Content>> used;
    bool ended = false;
    std::string end;
    std::vector<std::pair<std::weak_ptr<Content>, uint64_t>> awaited;  // with changes to be on disk
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
  durable::Rows rows_;  // as found on disk; empty after Start

  // Guarded by transactions.
  bool stopped_ = false;
  absl::flat_hash_map<const store::Buffer*, ContentPtr> contents_;
  std::map<std::string, KeptJob> jobs_;   // by session, until written as ended
  std::set<std::string> ended_;           // jobs of jobs_ that have ended
  std::set<uint64_t> job_rows_;           // rows in use; only before Start
  std::set<uint64_t> definition_rows_;    // rows in use; only before Start
  std::map<uint64_t, uint64_t> renamed_;  // old to new rows of results that jobs make again
  std::vector<std::weak_ptr<Content>> no_room_;
  std::vector<Load> loads_;
  SteadyTime write_failure_told_ = SteadyTime::InfinitePast();

  mutable std::atomic<int64_t> not_written_told_{0};  // seconds since boot
  absl::Mutex mutex_;                                 // taken inside a transaction
  std::multimap<SteadyTime, ContentPtr> due_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool hurry_ ABSL_GUARDED_BY(mutex_) = false;  // all writes are due now
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread writer_, reader_;
};

}  // namespace stride::engine
