#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "server/scheduler/sharded.h"
#include "server/session/array.h"
#include "stride/v1/operation.pb.h"

// Copies between arrays that are spread in different ways, and what other operations over them need
// of it.
namespace stride::scheduler {

// A part of an array in one piece, which devices need from one that has it, is cut out there first
// when the array is larger than this: what moves then is the part alone.
inline constexpr int64_t kCutBytes = int64_t{1} << 20;

// `operation` is a Copy, not into a spread array. `result`: of the whole.
absl::StatusOr<ArrayList> CopySharded(const ShardedOperation& operation, const ArrayInfo& result,
                                      PartRunner& runner);

// Other elements of the array's buffer.
std::shared_ptr<session::Array> ViewOf(const std::shared_ptr<session::Array>& array,
                                       ArrayInfo info);
// The array, or of a spread one what a part on this device takes.
std::shared_ptr<session::Array> OnDevice(const std::shared_ptr<session::Array>& array, int device);
// A Copy of one array: the type that `like` asks for, into a new array or an existing one.
v1::Operation CopyOperation(const v1::Copy& like, bool existing);

}  // namespace stride::scheduler
