#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/unique_fd.h"
#include "server/broker/worker.h"
#include "server/wire/worker.pb.h"

namespace stride::broker {

// Outstanding requests of a worker: tasks, cancels, copies, loads and arenas without an answer yet.
// A worker is not trusted, so each answer is checked against them; an error means that the worker
// answers falsely. Not thread-safe.
class EventLedger {
 public:
  using CopyDone = std::function<void(absl::Status)>;

  // --- requests ---
  uint64_t last_submitted() const { return last_submitted_; }
  void AddTasks(uint64_t last) { last_submitted_ = last; }
  uint64_t AddCopy(CopyDone done);
  // False when a request for the same module, arena or task is pending already.
  bool AddLoad(uint64_t module, Worker::LoadDone loaded);
  bool AddArena(uint64_t arena);
  bool AddCancel(uint64_t sequence) { return cancels_.insert(sequence).second; }

  // --- answers ---
  absl::Status CheckTask(const wire::TaskResult& result);
  uint64_t last_result() const { return last_result_; }
  absl::Status CheckPrinted(const wire::Printed& printed);
  absl::Status TakeCancel(uint64_t sequence);
  absl::StatusOr<std::vector<CopyDone>> TakeCopies(const wire::CopiesDone& done);
  absl::StatusOr<Worker::LoadDone> TakeLoad(uint64_t module);
  absl::Status PutArena(uint64_t arena, absl::StatusOr<UniqueFd> result);
  bool ArenaAnswered(uint64_t arena) const;
  absl::StatusOr<UniqueFd> TakeArena(uint64_t arena);

  // --- the worker died: no answers will follow ---
  std::vector<CopyDone> TakeAllCopies();
  std::vector<Worker::LoadDone> TakeAllLoads();
  void FailArenas(const absl::Status& cause);

 private:
  uint64_t last_submitted_ = 0;
  uint64_t last_result_ = 0;
  uint64_t last_copy_ = 0;
  uint64_t last_printed_ = 0;   // the task with the latest printed text
  size_t printed_bytes_ = 0;    // bytes printed by that task
  std::set<uint64_t> cancels_;  // by their first task
  std::map<uint64_t, CopyDone> copies_;
  std::map<uint64_t, Worker::LoadDone> loads_;
  std::map<uint64_t, std::optional<absl::StatusOr<UniqueFd>>> arenas_;  // nullopt: not answered yet
};

}  // namespace stride::broker
