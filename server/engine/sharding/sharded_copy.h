#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "server/engine/sharding/sharded_operation.h"
#include "server/session/array.h"
#include "stride/v1/operation.pb.h"

// Copies between arrays of different shardings, and helpers for other operations on sharded arrays.
namespace stride::engine {

// Devices may need a part of an array that lies on one device. If the array is larger than this,
// the part is copied out there first, and only the part moves.
inline constexpr int64_t kCutBytes = int64_t{1} << 20;

// `operation` is a Copy whose output is not an existing sharded array. `result`: the layout of the
// whole output.
absl::StatusOr<ArrayList> CopySharded(const ShardedOperation& operation, const ArrayInfo& result,
                                      PartRunner& runner);

// An array with another layout in the same buffer.
std::shared_ptr<session::Array> ViewOf(const std::shared_ptr<session::Array>& array,
                                       ArrayInfo info);
// The array, or the part of a sharded array that an operation on this device uses.
std::shared_ptr<session::Array> OnDevice(const std::shared_ptr<session::Array>& array, int device);
// A Copy of one array: the type that `like` asks for, into a new array or an existing one.
v1::Operation CopyOperation(const v1::Copy& like, bool existing);

}  // namespace stride::engine
