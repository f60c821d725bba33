#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/engine/sharding/sharded_operation.h"
#include "server/ops/sharding.h"
#include "server/session/array.h"
#include "stride/v1/operation.pb.h"

// Divides an operation on sharded arrays into ordinary operations on their parts, each on its
// part's device. docs/sharding.md.
namespace stride::engine {

// Runs the operation in parts, and returns the outputs; new ones have no name yet. On an error the
// caller cancels the parts that were accepted.
absl::StatusOr<ArrayList> RunSharded(const ShardedOperation& operation, PartRunner& runner);

}  // namespace stride::engine
