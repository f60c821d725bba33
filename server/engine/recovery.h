#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/arrays/arrays.h"
#include "server/engine/core/core.h"
#include "server/engine/definitions/functions.h"
#include "server/engine/definitions/modules.h"
#include "server/engine/definitions/programs.h"
#include "server/engine/jobs/jobs.h"
#include "server/engine/operations/operations.h"
#include "server/engine/persistence/record_set.h"
#include "server/engine/persistence/state_codec.h"
#include "server/engine/restored_dispositions.h"
#include "server/engine/scheduling/scheduler.h"
#include "server/recovery/journals.h"
#include "server/recovery/key.h"

namespace stride::engine {

// Restores the state of an earlier daemon's engine and resumes its tasks: from the journals and
// descriptors in the FdStore or, without journals, from the disk. Both become one RecordSet, which
// is restored in one way; jobs on disk run again from their requests. Runs once, before the daemon
// accepts calls.
//
// Lost content is reported: arrays on a device that is gone carry DATA_LOST, and arrays that a task
// was changing in place when the daemon died carry WORKER_LOST. If one journal is damaged, or
// reading them kills daemon after daemon, all are discarded.
class Recovery {
 public:
  struct Parts {
    Core* core;
    Scheduler* scheduler;
    Operations* operations;
    Arrays* arrays;
    Modules* modules;
    Functions* functions;
    Programs* programs;
    Jobs* jobs;
  };
  explicit Recovery(Parts parts) : parts_(parts), core_(*parts.core) {}

  // `FdStore` is the FdStore, or null, and must outlive the engine. If it stores descriptors, the
  // engine records into the journals afterwards, old or new.
  void Run(fd_store::FdStore* fd_store, std::vector<NamedFd> kept);

 private:
  // False: there is no state in the journals, and new ones have begun.
  bool FromJournals(fd_store::FdStore* fd_store, std::vector<NamedFd> kept);
  void FromDisk();
  absl::StatusOr<std::unique_ptr<recovery::Journals>> OpenJournals();
  void StartAnew(const absl::Status& why);
  void EndOldWorkers();
  void ForgetDescriptors();

  // The id of the record in the journals; 0: it is on disk only, so a journal gets a new one.
  uint64_t IdOf(uint64_t record) const { return from_disk_ ? 0 : record; }
  // The id of a definition's record in the journals, which gets it now if it was on disk only.
  template <typename Record>
  uint64_t Recorded(GlobalTransaction& transaction, recovery::Kind kind, uint64_t id,
                    const Record& record);

  void RestoreThings(GlobalTransaction& transaction);
  void RestoreArenas(GlobalTransaction& transaction);
  void RestoreBuffers();
  void RestoreSessions(GlobalTransaction& transaction);
  void RestoreArrays(GlobalTransaction& transaction);
  void RestoreArray(GlobalTransaction& transaction, uint64_t id,
                    const recovery::ArrayRecord& record);
  void RestoreUpload(GlobalTransaction& transaction, const recovery::ArrayRecord& record,
                     const std::shared_ptr<session::Array>& array);
  void AbandonUnacceptedJobs(GlobalTransaction& transaction);
  void RestoreTasks(GlobalTransaction& transaction);
  std::shared_ptr<ProgramLaunch> FindProgramLaunch(GlobalTransaction& transaction,
                                                   const TenantId& tenant, uint64_t record);
  absl::StatusOr<std::shared_ptr<Task>> MakeTask(GlobalTransaction& transaction, uint64_t id,
                                                 const recovery::TaskRecord& record);
  absl::Status InputError(uint64_t id) const;
  void End(GlobalTransaction& transaction, uint64_t id, const absl::Status& status);
  void SpoilWhatNobodyFills();
  void SpoilWhatIsGone();
  void RestoreJobs();

  const Parts parts_;
  Core& core_;
  fd_store::FdStore* fd_store_ = nullptr;
  std::map<std::string, UniqueFd> fds_;
  bool from_disk_ = false;
  RecordSet records_;
  WorkerProgress progress_;
  std::map<uint64_t, TaskDisposition> dispositions_;  // by task
  RestoredArenas arenas_;
  RestoredBuffers buffers_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<session::Session>> sessions_;
  RestoredArrays arrays_;
  RestoredArrays array_parts_;  // parts of sharded arrays
  std::map<uint64_t, std::shared_ptr<ProgramLaunch>> program_launches_;
  std::map<uint64_t, std::shared_ptr<Task>> tasks_;  // unfinished
  std::vector<std::shared_ptr<Task>> resumed_;       // in their old order of acceptance
};

}  // namespace stride::engine
