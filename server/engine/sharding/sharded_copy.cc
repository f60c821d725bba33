#include "server/engine/sharding/sharded_copy.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "server/base/block_pool.h"
#include "server/base/error.h"
#include "server/engine/sharding/shard_layout.h"
#include "server/ops/sharding.h"

namespace stride::engine {

using session::Array;
using ArrayPtr = std::shared_ptr<Array>;

namespace {

class Resharding {
 public:
  Resharding(const ShardedOperation& request, const ArrayInfo& whole, PartRunner& runner)
      : request_(request), operation_(*request.operation), whole_(whole), runner_(runner) {}

  absl::StatusOr<ArrayList> Run() {
    if (operation_.copy().move()) {
      return NotImplemented("move of a sharded array",
                            "not implemented over several devices: copy.move; Copy the array");
    }
    const ArrayPtr& input = request_.inputs[0];
    const ArrayPtr& existing = request_.existing[0];
    const ArrayInfo& info = whole_;
    if (input == nullptr) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "copy.input",
                          "a number has no elements to spread; create a filled array");
    }
    if (existing != nullptr && existing->info->shape != input->info->shape) {
      return NotImplemented("broadcasting copy of a sharded array",
                            "not implemented over several devices: a Copy that broadcasts; "
                            "Copy the array to one device first");
    }
    int64_t bytes = info.size_bytes();
    const auto sources = PiecesOf(input, request_.device);
    if (!request_.wanted[0]) {
      // The target is one device.
      Piece target{existing, request_.device >= 0 ? request_.device : sources[0].device};
      if (absl::Status s = runner_.Admit(3 * sources.size(), bytes); !s.ok()) return s;
      auto made = Assemble(input, target, info);
      if (!made.ok()) return made.status();
      return ArrayList{*std::move(made)};
    }
    const ops::Spread& spread = *request_.wanted[0];
    const size_t num_parts = spread.devices.size();
    if (spread.replicated) bytes *= static_cast<int64_t>(num_parts);
    if (absl::Status s = runner_.Admit(3 * sources.size() * num_parts, bytes); !s.ok()) return s;
    ArrayList parts;
    for (size_t i = 0; i < num_parts; ++i) {
      Piece target{nullptr, spread.devices[i]};
      if (!spread.replicated) {
        const auto begin = ops::SplitAxis(info.shape[spread.axis], num_parts);
        target.axis = spread.axis;
        target.begin = begin[i];
        target.end = begin[i + 1];
      }
      auto part = Assemble(input, target, PartInfo(info, spread, i));
      if (!part.ok()) return part.status();
      parts.push_back(*std::move(part));
    }
    return ArrayList{WholeOf(info, spread, std::move(parts))};
  }

 private:
  // A piece of an array in one buffer: the elements [begin, end) of the whole along an axis.
  struct Piece {
    ArrayPtr array;
    int device = -1;
    int axis = -1;  // -1: the whole array
    int64_t begin = 0, end = 0;
  };

  // The parts of an array; of a replicated array one: the replica on `device`, or any.
  static std::vector<Piece> PiecesOf(const ArrayPtr& array, int device) {
    if (array->shards == nullptr) return {{array}};
    const session::Shards& shards = *array->shards;
    if (shards.replicated) {
      const bool there = std::count(shards.devices.begin(), shards.devices.end(), device) > 0;
      return {{OnDevice(array, device), there ? device : shards.devices[0]}};
    }
    const auto begin = ops::SplitAxis(array->info->shape[shards.axis], shards.parts.size());
    std::vector<Piece> pieces;
    for (size_t i = 0; i < shards.parts.size(); ++i) {
      pieces.push_back({shards.parts[i], shards.devices[i], shards.axis, begin[i], begin[i + 1]});
    }
    return pieces;
  }

  // Gathers the target's elements on its device from the pieces of `input` that have some.
  // `target.array`: an existing array, or null; `info`: the layout of the target.
  absl::StatusOr<ArrayPtr> Assemble(const ArrayPtr& input, const Piece& target,
                                    const ArrayInfo& info) {
    const std::vector<Piece> sources = PiecesOf(input, target.device);
    ArrayPtr made = target.array;
    bool fresh = false;
    for (const Piece& source : sources) {
      ArrayInfo from = source.array->info, to = info;
      auto cut = [&](const Piece& by, const Piece& other, ArrayInfo* array) {
        // Reduces the array, which is the piece `other`, to the elements that `by` has too.
        if (by.axis < 0) return;
        const int64_t extent = array->shape[by.axis];
        const int64_t base = other.axis == by.axis ? other.begin : 0;
        const int64_t begin = std::clamp<int64_t>(by.begin - base, 0, extent);
        const int64_t end = std::clamp<int64_t>(by.end - base, begin, extent);
        *array = ops::SliceOf(*array, by.axis, begin, end);
      };
      cut(target, source, &from);
      cut(source, target, &to);
      const bool whole_target = to.shape == info.shape;
      if (from.num_elements() == 0) continue;
      ArrayPtr view = ViewOf(source.array, from);
      if (whole_target && target.array == nullptr) return TakeWhole(source, view, target.device);
      if (made == nullptr) {
        auto array = runner_.NewArray(info);
        if (!array.ok()) return array.status();
        made = *array;
        fresh = true;
      }
      // Only the piece moves to the target's device.
      const bool is_part = from.size_bytes() < source.array->buffer->size;
      if (is_part && source.array->buffer->size > kCutBytes && source.device != target.device) {
        auto piece = CopyNew(view, source.device);
        if (!piece.ok()) return piece;
        view = *std::move(piece);
      }
      ArrayInfo place = to;
      if (target.array != nullptr) {
        place = target.array->info;
        cut(source, target, &place);
      }
      const v1::Operation copy = CopyOperation(operation_.copy(), /*existing=*/true);
      auto written = runner_.Run({.operation = &copy,
                                  .inputs = {view},
                                  .targets = {{ViewOf(made, place), std::exchange(fresh, false)}},
                                  .device = target.device});
      if (!written.ok()) return written.status();
    }
    if (made != nullptr) return made;
    v1::Operation fill;  // an array without elements
    v1::ArraySpec* spec = fill.mutable_creation()->mutable_fill()->mutable_spec();
    spec->set_data_type(static_cast<v1::DataType>(info.dtype));
    for (int64_t extent : info.shape) spec->add_shape(extent);
    fill.add_outputs()->set_inline_result(true);
    auto empty = runner_.Run({.operation = &fill, .targets = {{}}, .device = target.device});
    if (!empty.ok()) return empty.status();
    return (*empty)[0];
  }

  absl::StatusOr<ArrayPtr> CopyNew(const ArrayPtr& view, int device) {
    const v1::Operation copy = CopyOperation(operation_.copy(), /*existing=*/false);
    auto made =
        runner_.Run({.operation = &copy, .inputs = {view}, .targets = {{}}, .device = device});
    if (!made.ok()) return made.status();
    return (*made)[0];
  }

  // Copies on the source's device; then only the copy moves.
  absl::StatusOr<ArrayPtr> TakeWhole(const Piece& source, const ArrayPtr& view, int device) {
    auto copy = CopyNew(view, source.device);
    if (!copy.ok() || source.device == device || device < 0) return copy;
    return runner_.Move(*std::move(copy), device);
  }

  const ShardedOperation& request_;
  const v1::Operation& operation_;
  const ArrayInfo& whole_;
  PartRunner& runner_;
};

}  // namespace

absl::StatusOr<ArrayList> CopySharded(const ShardedOperation& operation, const ArrayInfo& result,
                                      PartRunner& runner) {
  return Resharding(operation, result, runner).Run();
}

ArrayPtr ViewOf(const ArrayPtr& array, ArrayInfo info) {
  auto view = MakePooled<Array>();
  view->info = std::move(info);
  view->buffer = array->buffer;
  view->error = array->error;
  view->create_time = array->create_time;
  return view;
}

// The replica or piece that a part on `device` uses.
ArrayPtr OnDevice(const ArrayPtr& array, int device) {
  if (array == nullptr || array->shards == nullptr) return array;
  const session::Shards& shards = *array->shards;
  for (size_t i = 0; i < shards.devices.size(); ++i) {
    if (shards.devices[i] == device) return shards.parts[i];
  }
  return shards.parts[0];
}

v1::Operation CopyOperation(const v1::Copy& like, bool existing) {
  v1::Operation copy;
  copy.mutable_copy()->mutable_input()->set_handle(1);  // stands for the array
  copy.mutable_copy()->set_data_type(like.data_type());
  v1::Output* output = copy.add_outputs();
  if (existing) {
    output->set_existing(true);
  } else {
    output->set_inline_result(true);
  }
  return copy;
}

}  // namespace stride::engine
