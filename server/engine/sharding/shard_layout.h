#pragma once

#include <cstddef>
#include <memory>

#include "server/ops/sharding.h"
#include "server/session/array.h"

// Layouts of sharded arrays and of their parts.
namespace stride::engine {

// The sharded array that consists of these parts.
std::shared_ptr<session::Array> WholeOf(const ArrayInfo& info, const ops::Spread& spread,
                                        session::ArrayList parts);
ops::Spread SpreadOf(const session::Shards& shards);
// Layout of part `i` of an array that is to be spread.
ArrayInfo PartInfo(const ArrayInfo& whole, const ops::Spread& spread, size_t i);

}  // namespace stride::engine
