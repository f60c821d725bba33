#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "server/scheduler/operations.h"

// What the files that make up Operations share.
namespace stride::scheduler {

// An operation with its names looked up.
struct Operations::Resolved {
  std::shared_ptr<session::Session> session;
  std::vector<std::shared_ptr<session::Array>> inputs;  // null: a scalar
  struct Target {
    session::ArrayName name;  // both session and tenant empty: inline, anonymous
    bool is_inline = false;
    std::shared_ptr<session::Array> existing;
    bool fresh = false;  // nobody needs what the existing array's buffer has now
  };
  std::vector<Target> targets;
  std::vector<std::shared_ptr<session::Array>> outputs;  // made by Launch
  int device = -1;
  bool asks_sharding = false;  // of a new output
  bool reads_peers = false;    // Task::reads_peers
  Extras extras;
  TaskList* launched = nullptr;  // hears of every task; may be null
  bool passing = false;  // a call whose results travel inside it, and that no journal tells of

  // A part of the same operation, on these arrays.
  Resolved WithInputs(std::vector<std::shared_ptr<session::Array>> arrays) const {
    Resolved part;
    part.session = session;
    part.device = device;
    part.extras = extras;
    part.launched = launched;
    part.inputs = std::move(arrays);
    return part;
  }
};

}  // namespace stride::scheduler
