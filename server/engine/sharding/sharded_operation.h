#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/engine/core/plan_cache.h"
#include "server/ops/sharding.h"
#include "server/session/array.h"
#include "stride/v1/operation.pb.h"

namespace stride::engine {

using session::ArrayList;

// Plans and accepts the operations on parts. The caller of RunSharded implements it.
class PartRunner {
 public:
  virtual ~PartRunner() = default;

  // The array for a result: a new one, or an existing one.
  struct Target {
    std::shared_ptr<session::Array> existing;
    bool fresh = false;  // the content of the existing array's buffer is not needed
  };
  struct Part {
    const v1::Operation* operation = nullptr;
    ArrayList inputs;  // null: a scalar
    std::vector<Target> targets;
    int device = -1;                         // -1: the scheduler's choice
    std::shared_ptr<const Planned> planned;  // null: not planned yet
    // The operation alone uses the inputs, and each element once: small ones are read on their
    // device.
    bool reads_peers = false;
  };
  // The plan of an operation on arrays of these layouts. Null: a scalar input, or a new output.
  virtual absl::StatusOr<std::shared_ptr<const Planned>> Plan(
      const v1::Operation& operation, absl::Span<const ArrayInfo* const> inputs,
      absl::Span<const ArrayInfo* const> existing) = 0;
  // Checks that so many more operations and bytes are within the tenant's quotas.
  virtual absl::Status Admit(size_t num_parts, int64_t bytes) = 0;
  // Accepts the operation on a part. Returns its outputs.
  virtual absl::StatusOr<ArrayList> Run(Part part) = 0;
  // Moves the array: the device then has its only replica. Returns the same array.
  virtual absl::StatusOr<std::shared_ptr<session::Array>> Move(
      std::shared_ptr<session::Array> array, int device) = 0;
  // A new C-contiguous array, for Run's `fresh` targets.
  virtual absl::StatusOr<std::shared_ptr<session::Array>> NewArray(const ArrayInfo& info) = 0;
};

// An operation with its names looked up. Some of its arrays are sharded, or its outputs are to be.
struct ShardedOperation {
  const v1::Operation* operation = nullptr;
  ArrayList inputs;    // null: a scalar
  ArrayList existing;  // by output; null: a new array
  std::vector<std::string> input_fields, output_fields;
  std::vector<std::optional<ops::Spread>> wanted;  // by output: Output.sharding
  int device = -1;                                 // Operation.device
};

}  // namespace stride::engine
