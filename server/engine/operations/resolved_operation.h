#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "server/base/steady_time.h"
#include "server/engine/core/task.h"
#include "server/engine/scheduling/hazards.h"
#include "server/session/catalogue.h"

namespace stride::engine {

// Additions of a caller in the engine to an operation.
struct OperationExtras {
  std::function<void(TaskState)> observer;  // receives the task's states
  std::shared_ptr<Task> after;              // nothing runs before this ended
  std::optional<int> priority;              // of an operation that has none
};

// An operation with its names looked up.
struct ResolvedOperation {
  std::shared_ptr<session::Session> session;
  SteadyTime now;             // the time of acceptance
  session::ArrayList inputs;  // null: a scalar
  struct Target {
    uint64_t handle = 0;      // in the session; 0: the output has `name` or is inline
    session::ArrayName name;  // empty: inline, anonymous
    bool is_inline = false;
    std::shared_ptr<session::Array> existing;
    bool fresh = false;  // the content of the existing array's buffer is not needed
  };
  absl::InlinedVector<Target, 1> targets;
  session::ArrayList outputs;  // Launch creates them
  int device = -1;
  bool asks_sharding = false;  // for a new output
  bool reads_peers = false;    // Task::reads_peers
  OperationExtras extras;
  TaskList* launched = nullptr;  // gets every task; may be null
  // For a task of a loop or branch: the buffers of its inputs, in whose order the loop's own task
  // stands. Null: an operation of its own.
  std::shared_ptr<const std::set<const store::Buffer*>> held;
  bool passing = false;  // a call with inline results, which no journal records

  // One part of the same operation, on these arrays.
  ResolvedOperation WithInputs(session::ArrayList arrays) const {
    ResolvedOperation part;
    part.now = now;
    part.session = session;
    part.device = device;
    part.extras = extras;
    part.launched = launched;
    part.held = held;
    part.inputs = std::move(arrays);
    return part;
  }
};

}  // namespace stride::engine
