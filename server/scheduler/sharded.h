#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/ops/sharding.h"
#include "server/scheduler/plan_cache.h"
#include "server/session/array.h"
#include "stride/v1/operation.pb.h"

// What becomes of an operation over arrays that are spread over devices: ordinary operations on
// their parts, each on its part's device. docs/sharding.md.
namespace stride::scheduler {

using session::ArrayList;

// Accepts the operations on parts.
class PartRunner {
 public:
  virtual ~PartRunner() = default;

  // Where a result goes: a new array, or an existing one.
  struct Target {
    std::shared_ptr<session::Array> existing;
    bool fresh = false;  // nobody needs what the existing one's buffer has now
  };
  struct Part {
    const v1::Operation* operation = nullptr;
    ArrayList inputs;  // null: a scalar
    std::vector<Target> targets;
    int device = -1;                         // -1: where it is done first
    std::shared_ptr<const Planned> planned;  // null: not known
    // Nobody else uses the inputs, and each element once: what is small is not worth a move.
    bool reads_peers = false;
  };
  // Of an operation on arrays that lie so; null: a scalar, or a new output.
  virtual absl::StatusOr<std::shared_ptr<const Planned>> Plan(
      const v1::Operation& operation, absl::Span<const ArrayInfo* const> inputs,
      absl::Span<const ArrayInfo* const> existing) = 0;
  // That so many more operations and bytes are within the tenant's quotas.
  virtual absl::Status Admit(size_t num_parts, int64_t bytes) = 0;
  // Accepts it; the results.
  virtual absl::StatusOr<ArrayList> Run(Part part) = 0;
  // The same array, whose only replica is to be on the device.
  virtual absl::StatusOr<std::shared_ptr<session::Array>> Move(
      std::shared_ptr<session::Array> array, int device) = 0;
  // A C-contiguous array of its own, for Run's `fresh` targets.
  virtual absl::StatusOr<std::shared_ptr<session::Array>> NewArray(const ArrayInfo& info) = 0;
};

// An operation with its names looked up, some of whose arrays are spread or are to be.
struct ShardedOperation {
  const v1::Operation* operation = nullptr;
  ArrayList inputs;    // null: a scalar
  ArrayList existing;  // by output; null: it is new
  std::vector<std::string> input_fields, output_fields;
  std::vector<std::optional<ops::Spread>> wanted;  // by output: Output.sharding
  int device = -1;                                 // Operation.device
};

// Has the operation done in parts: all are accepted, or none once this has failed and the caller
// has cancelled those that were. Returns the outputs; new ones have no name yet.
absl::StatusOr<ArrayList> RunSharded(const ShardedOperation& operation, PartRunner& runner);

// An array that is made of these parts.
std::shared_ptr<session::Array> WholeOf(const ArrayInfo& info, const ops::Spread& spread,
                                        ArrayList parts);
ops::Spread SpreadOf(const session::Shards& shards);

}  // namespace stride::scheduler
