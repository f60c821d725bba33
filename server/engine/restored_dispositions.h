#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "server/engine/persistence/record_set.h"
#include "server/engine/scheduling/task_dispositions.h"
#include "server/recovery/records.pb.h"

namespace stride::engine {

// The progress of an earlier daemon's workers, by record; absent: not known.
using WorkerProgress = std::map<uint64_t, std::optional<QueueProgress>>;

// Whether the task changes a buffer in place.
bool WritesInPlace(const recovery::DispatchRecord& dispatch);
// Whether the task, or a part of it, was the first in its worker's queue that had begun and not
// ended; also where the worker's progress is not known.
bool WasRunning(const recovery::DispatchRecord& dispatch, const WorkerProgress& progress);

// The disposition of each task of an earlier daemon, by id. Pure; any thread.
std::map<uint64_t, TaskDisposition> DispositionsOf(const RecordSet& records,
                                                   const WorkerProgress& progress);

}  // namespace stride::engine
