#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/recovery/journals.h"
#include "server/recovery/records.pb.h"
#include "server/scheduler/arrays.h"
#include "server/scheduler/core.h"
#include "server/scheduler/fates.h"
#include "server/scheduler/functions.h"
#include "server/scheduler/jobs.h"
#include "server/scheduler/modules.h"
#include "server/scheduler/operations.h"
#include "server/scheduler/programs.h"
#include "server/scheduler/scheduler.h"

namespace stride::scheduler {

// Restores the state of an earlier daemon's engine from the journals and descriptors in the
// FdStore, and resumes its tasks. Runs once, before the daemon accepts calls.
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

  // Afterwards the engine records into the journals, old or new. `keeper`, the FdStore, must store
  // descriptors, and outlive the engine. True when it restored an earlier state.
  bool Run(keeper::Keeper* keeper, std::vector<NamedFd> kept);

 private:
  // The records of all journals, parsed.
  struct Books {
    std::map<uint64_t, recovery::SessionRecord> sessions;
    std::map<uint64_t, recovery::ArrayRecord> arrays;
    std::map<uint64_t, recovery::BufferRecord> buffers;
    std::map<uint64_t, std::string> inline_bytes;
    std::map<uint64_t, recovery::ArenaRecord> arenas;
    std::map<uint64_t, recovery::WorkerRecord> workers;
    std::map<uint64_t, recovery::TaskRecord> tasks;
    std::map<uint64_t, recovery::DispatchRecord> dispatches;
    std::map<uint64_t, recovery::TaskResultRecord> results;
    std::map<uint64_t, recovery::JobRecord> jobs;
    std::map<uint64_t, recovery::ModuleRecord> modules;
    std::map<uint64_t, recovery::FunctionRecord> functions;
    std::map<uint64_t, recovery::ProgramRecord> programs;
    std::map<uint64_t, recovery::ReplayRecord> replays;
    uint64_t last_id = 0, last_task = 0;
  };

  absl::StatusOr<std::unique_ptr<recovery::Journals>> OpenJournals();
  absl::Status Read(const recovery::Journals& journals);
  void StartAnew(const absl::Status& why);
  void EndOldWorkers();
  void ForgetDescriptors();

  void RestoreThings(GlobalTransaction& transaction);
  void RestoreArenas(GlobalTransaction& transaction);
  void RestoreBuffers();
  void RestoreSessions(GlobalTransaction& transaction);
  void RestoreArrays(GlobalTransaction& transaction);
  void RestoreArray(GlobalTransaction& transaction, uint64_t id,
                    const recovery::ArrayRecord& record);
  void RestoreUpload(GlobalTransaction& transaction, const recovery::ArrayRecord& record,
                     const std::shared_ptr<session::Array>& array);
  void RestoreShards(const recovery::ShardsRecord& record, session::Array& array);
  void AbandonUnacceptedJobs(GlobalTransaction& transaction);
  void JudgeTasks();
  QueuedTask AsQueued(uint64_t id) const;
  bool Repeatable(const recovery::DispatchRecord& dispatch) const;
  bool WasRunning(const recovery::DispatchRecord& dispatch) const;
  void RestoreTasks(GlobalTransaction& transaction);
  std::shared_ptr<Replay> FindReplay(GlobalTransaction& transaction, const TenantId& tenant,
                                     uint64_t record);
  std::shared_ptr<Task> MakeTask(GlobalTransaction& transaction, uint64_t id,
                                 const recovery::TaskRecord& record, absl::Status* error);
  absl::Status InputError(uint64_t id) const;
  void End(GlobalTransaction& transaction, uint64_t id, const absl::Status& status);
  void SpoilWhatNobodyFills();
  void SpoilWhatIsGone();
  void RestoreJobs();

  const Parts parts_;
  Core& core_;
  keeper::Keeper* keeper_ = nullptr;
  std::map<std::string, UniqueFd> fds_;
  Books books_;
  std::map<uint64_t, std::optional<QueueProgress>> progress_;  // by worker; absent: not known
  std::map<uint64_t, Fate> fates_;                             // by task
  std::map<uint64_t, std::shared_ptr<store::Arena>> arenas_;
  std::map<uint64_t, int> arena_device_;
  std::map<uint64_t, std::shared_ptr<store::Buffer>> buffers_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<session::Session>> sessions_;
  std::map<uint64_t, std::shared_ptr<session::Array>> arrays_;
  std::map<uint64_t, std::shared_ptr<session::Array>> array_parts_;  // parts of sharded arrays
  std::map<uint64_t, std::shared_ptr<Replay>> replays_;
  std::map<uint64_t, std::shared_ptr<Task>> tasks_;  // unfinished
  std::vector<std::shared_ptr<Task>> resumed_;       // in their old order of acceptance
};

}  // namespace stride::scheduler
