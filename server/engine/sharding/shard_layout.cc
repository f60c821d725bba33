#include "server/engine/sharding/shard_layout.h"

#include <utility>

#include "server/base/block_pool.h"

namespace stride::engine {

session::ArrayPtr WholeOf(const ArrayInfo& info, const ops::Spread& spread,
                          session::ArrayList parts) {
  auto whole = MakePooled<session::Array>();
  whole->info = info;
  auto shards = std::make_shared<session::Shards>();
  shards->axis = spread.axis;
  shards->replicated = spread.replicated;
  shards->devices = spread.devices;
  if (!parts.empty()) whole->create_time = parts[0]->create_time;
  shards->parts = std::move(parts);
  whole->shards = std::move(shards);
  return whole;
}

ops::Spread SpreadOf(const session::Shards& shards) {
  return {shards.axis, shards.replicated, shards.devices};
}

ArrayInfo PartInfo(const ArrayInfo& whole, const ops::Spread& spread, size_t i) {
  if (spread.replicated) return whole;
  const auto begin = ops::SplitAxis(whole.shape[spread.axis], spread.devices.size());
  return Contiguous(whole.dtype, ops::PartShape(whole.shape, spread.axis, begin[i + 1] - begin[i]));
}

}  // namespace stride::engine
