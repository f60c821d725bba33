#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "server/base/steady_time.h"
#include "server/scheduler/operations.h"

// What the files that make up Operations share.
namespace stride::scheduler {

// An operation with its names looked up.
struct Operations::Resolved {
  std::shared_ptr<session::Session> session;
  SteadyTime now;             // of acceptance
  session::ArrayList inputs;  // null: a scalar
  struct Target {
    uint64_t handle = 0;      // of the session; 0: `name` counts, or it is inline
    session::ArrayName name;  // empty: inline, anonymous
    bool is_inline = false;
    std::shared_ptr<session::Array> existing;
    bool fresh = false;  // nobody needs what the existing array's buffer has now
  };
  absl::InlinedVector<Target, 1> targets;
  session::ArrayList outputs;  // made by Launch
  int device = -1;
  bool asks_sharding = false;  // of a new output
  bool reads_peers = false;    // Task::reads_peers
  Extras extras;
  TaskList* launched = nullptr;  // hears of every task; may be null
  // For a piece of a loop or a branch: the buffers of its inputs, which have their place in the
  // order already. Null: it is an operation of its own.
  std::shared_ptr<const std::set<const store::Buffer*>> held;
  bool passing = false;  // a call whose results travel inside it, and that no journal tells of

  // A part of the same operation, on these arrays.
  Resolved WithInputs(session::ArrayList arrays) const {
    Resolved part;
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

}  // namespace stride::scheduler
