#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "server/engine/core/space_names.h"
#include "server/engine/core/task.h"
#include "server/engine/persistence/state_codec.h"
#include "server/ops/program_graph.h"
#include "server/recovery/records.pb.h"

// Tasks, their dispatches and results, and programs that run as one task, to and from their
// records. Each ToRecord takes an empty record.
namespace stride::engine {

// Bits of UseRecord.flags and DispatchRecord.flags.
inline constexpr uint32_t kUseRead = 1, kUseWrite = 2, kUseFresh = 4;

// Calls `write` once: the task's record is `begin`, which is serialized already and holds what all
// tasks of the plan share, followed by `record`. `scratch` saves allocations; it may hold anything.
void EncodeTask(
    const Task& task, const SpaceNames& spaces, recovery::TaskRecord* scratch,
    absl::FunctionRef<void(const recovery::TaskRecord& record, std::string_view begin)> write);

// Objects that a task's record refers to, and the names of the devices.
struct TaskReferences {
  std::shared_ptr<session::Session> session;      // null: it has none, or the session is gone
  std::shared_ptr<ProgramLaunch> program_launch;  // null: it has none, or the record is lost
  const RestoredBuffers& buffers;
  const SpaceNames& spaces;
};
// An unfinished task as it was before it was sent. DATA_LOST when a buffer or its program is gone;
// DEVICE_NOT_SERVING when the device that it must run on is.
absl::StatusOr<std::shared_ptr<Task>> TaskFrom(uint64_t id, const recovery::TaskRecord& record,
                                               const TaskReferences& references);

// A task that was sent.
void ToRecord(const Task& task, recovery::DispatchRecord* record);

// How a task of a job ended.
void ToRecord(const Task& task, const SpaceNames& spaces, recovery::TaskResultRecord* record);
// A task that has ended so.
std::shared_ptr<Task> FinishedTask(uint64_t id, const recovery::TaskResultRecord& record,
                                   const SpaceNames& spaces);

void ToRecord(const ops::ProgramGraph& graph, recovery::ProgramLaunchRecord* record);
// Restores only what tasks need: neither the outputs nor the estimated costs.
ops::ProgramGraph GraphFrom(const recovery::ProgramLaunchRecord& record);

}  // namespace stride::engine
