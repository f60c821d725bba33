#include "server/scheduler/sharded.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/partial_results.h"
#include "server/ops/pieces.h"
#include "server/ops/shape.h"

namespace stride::scheduler {

using session::Array;
using ArrayPtr = std::shared_ptr<Array>;

namespace {

// A part of an array in one piece, which devices need from one that has it, is cut out there first
// when the array is larger than this: what moves then is the part alone.
constexpr int64_t kCutBytes = int64_t{1} << 20;

ops::Input InfoOf(const ArrayPtr& array) {
  return array != nullptr ? ops::Input(array->info) : std::nullopt;
}

ArrayPtr ViewOf(const ArrayPtr& array, ArrayInfo info) {
  auto view = std::make_shared<Array>();
  view->info = std::move(info);
  view->buffer = array->buffer;
  view->error = array->error;
  view->create_time = array->create_time;
  return view;
}

// The one replica or piece of an array that a part's device takes.
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

class Launch {
 public:
  Launch(const ShardedOperation& request, PartRunner& runner)
      : request_(request), operation_(*request.operation), runner_(runner) {}

  absl::StatusOr<ArrayList> Run() {
    for (const ArrayPtr& input : request_.inputs) inputs_.push_back(InfoOf(input));
    for (const ArrayPtr& array : request_.existing) existing_.push_back(InfoOf(array));
    auto whole = runner_.Plan(operation_, inputs_, existing_);
    if (!whole.ok()) return whole.status();
    whole_ = whole->outputs;
    if (absl::Status status = CheckWanted(); !status.ok()) return status;
    if (operation_.has_creation()) return Create(*whole);
    if (operation_.has_copy() && !IsDividedCopy()) return Copy();
    if (operation_.has_view() && !request_.inputs[0]->shards->replicated) return View();
    return RunDivided();
  }

 private:
  absl::Status CheckWanted() const {
    for (size_t j = 0; j < request_.wanted.size(); ++j) {
      const std::string field = absl::StrCat(request_.output_fields[j], ".sharding");
      if (!request_.wanted[j]) continue;
      if (!operation_.has_copy() && !operation_.has_creation()) {
        return NotImplemented(
            absl::StrCat("sharding of the result of ", ops::KindName(operation_)),
            absl::StrCat("not implemented: ", field, " of ", ops::KindName(operation_),
                         "; a result is spread as its inputs are; Copy it for another way"));
      }
      if (request_.existing[j] != nullptr) {
        return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                            "an existing output is spread already as it is; leave this unset");
      }
      if (request_.device >= 0) {
        return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "device",
                            "an array is spread over devices or on one; leave this unset");
      }
      if (operation_.has_copy() && operation_.copy().move()) {
        return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "copy.move",
                            "what is spread in another way is copied; leave this unset");
      }
    }
    return absl::OkStatus();
  }

  // Part by part, as any elementwise operation: the target is there and is spread.
  bool IsDividedCopy() const {
    return request_.existing[0] != nullptr && request_.existing[0]->shards != nullptr;
  }

  // --- creation ---

  absl::StatusOr<ArrayList> Create(const ops::Plan& whole) {
    const ops::Spread& spread = *request_.wanted[0];
    const ArrayInfo& info = whole_[0];
    const auto begin = spread.replicated
                           ? std::vector<int64_t>()
                           : ops::SplitAxis(info.shape[spread.axis], spread.devices.size());
    int64_t outer = 1;
    for (int i = 0; i < spread.axis; ++i) outer *= info.shape[i];
    int64_t bytes = 0;
    std::vector<PartRunner::Part> parts;
    for (size_t i = 0; i < spread.devices.size(); ++i) {
      PartRunner::Part part{&operation_, {}, {{}}, spread.devices[i]};
      ArrayInfo own = info;
      int64_t first = 0;
      if (!spread.replicated) {
        own = Contiguous(info.dtype,
                         ops::PartShape(info.shape, spread.axis, begin[i + 1] - begin[i]));
        first = begin[i];
        for (size_t a = static_cast<size_t>(spread.axis) + 1; a < info.shape.size(); ++a)
          first *= info.shape[a];
      }
      // The elements of a fill know nothing of their place.
      if (outer > 1 && !spread.replicated && !operation_.creation().has_fill()) {
        return NotImplemented(
            "creation split along this axis",
            absl::StrCat("not implemented: ", request_.output_fields[0],
                         ".sharding of a range or random numbers along axis ", spread.axis,
                         "; create it split along axis 0 and Copy it"));
      }
      part.planned = ops::PartOfCreation(whole, outer > 1 ? 0 : first, own);
      if (!part.planned) {
        return NotImplemented("sharded creation",
                              "not implemented over several devices: this creation; create the "
                              "array on one device and Copy it");
      }
      bytes += own.size_bytes();
      parts.push_back(std::move(part));
    }
    if (absl::Status status = runner_.Admit(parts.size(), bytes); !status.ok()) return status;
    return Whole(spread, std::move(parts));
  }

  // Runs parts with one result each, which are the parts of one.
  absl::StatusOr<ArrayList> Whole(const ops::Spread& spread, std::vector<PartRunner::Part> parts) {
    ArrayList arrays;
    for (PartRunner::Part& part : parts) {
      auto made = runner_.Run(std::move(part));
      if (!made.ok()) return made.status();
      arrays.push_back((*made)[0]);
    }
    return ArrayList{WholeOf(whole_[0], spread, std::move(arrays))};
  }

  // --- copies from one spread to another ---

  // A piece of an array in one buffer: the elements [begin, end) of the whole along an axis.
  struct Piece {
    ArrayPtr array;
    int device = -1;
    int axis = -1;  // -1: all of it
    int64_t begin = 0, end = 0;
  };

  // Of a replicated array: the one that `device` has, or any.
  static std::vector<Piece> PiecesOf(const ArrayPtr& array, int device) {
    if (array->shards == nullptr) return {{array}};
    const session::Shards& shards = *array->shards;
    if (shards.replicated) {
      const bool there = std::count(shards.devices.begin(), shards.devices.end(), device) > 0;
      return {{OnDevice(array, device), there ? device : shards.devices[0]}};
    }
    const auto begin = ops::SplitAxis(array->info.shape[shards.axis], shards.parts.size());
    std::vector<Piece> pieces;
    for (size_t i = 0; i < shards.parts.size(); ++i) {
      pieces.push_back({shards.parts[i], shards.devices[i], shards.axis, begin[i], begin[i + 1]});
    }
    return pieces;
  }

  absl::StatusOr<ArrayList> Copy() {
    if (operation_.copy().move()) {
      return NotImplemented("move of a sharded array",
                            "not implemented over several devices: copy.move; Copy the array");
    }
    const ArrayPtr& input = request_.inputs[0];
    const ArrayPtr& existing = request_.existing[0];
    const ArrayInfo& info = whole_[0];
    if (input == nullptr) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "copy.input",
                          "a number has no elements to spread; create a filled array");
    }
    if (existing != nullptr && existing->info.shape != input->info.shape) {
      return NotImplemented("broadcasting copy of a sharded array",
                            "not implemented over several devices: a Copy that broadcasts; "
                            "Copy the array to one device first");
    }
    int64_t bytes = info.size_bytes();
    const auto sources = PiecesOf(input, request_.device);
    if (!request_.wanted[0]) {
      // To one device.
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
      ArrayInfo own = info;
      if (!spread.replicated) {
        const auto begin = ops::SplitAxis(info.shape[spread.axis], num_parts);
        target.axis = spread.axis;
        target.begin = begin[i];
        target.end = begin[i + 1];
        own = Contiguous(info.dtype,
                         ops::PartShape(info.shape, spread.axis, target.end - target.begin));
      }
      auto part = Assemble(input, target, own);
      if (!part.ok()) return part.status();
      parts.push_back(*std::move(part));
    }
    return ArrayList{WholeOf(info, spread, std::move(parts))};
  }

  // Brings the target's elements together on its device, from all pieces of `input` that have some.
  // `target.array`: an existing array, or null; `info`: of the target.
  absl::StatusOr<ArrayPtr> Assemble(const ArrayPtr& input, const Piece& target,
                                    const ArrayInfo& info) {
    const std::vector<Piece> sources = PiecesOf(input, target.device);
    ArrayPtr made = target.array;
    bool fresh = false;
    for (const Piece& source : sources) {
      ArrayInfo from = source.array->info, to = info;
      auto cut = [&](const Piece& by, const Piece& other, ArrayInfo* array) {
        // The elements that `by` has too of those that the array, a piece `other`, has.
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
      // What moves to the target's device is the piece alone.
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
    v1::Operation fill;  // of nothing
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

  // A copy that is made where the bytes are, and moves as it is.
  absl::StatusOr<ArrayPtr> TakeWhole(const Piece& source, const ArrayPtr& view, int device) {
    auto copy = CopyNew(view, source.device);
    if (!copy.ok() || source.device == device || device < 0) return copy;
    return runner_.Move(*std::move(copy), device);
  }

  // --- views ---

  absl::StatusOr<ArrayList> View() {
    const session::Shards& shards = *request_.inputs[0]->shards;
    ops::Spread spread = SpreadOf(shards);
    for (const v1::View::Step& step : operation_.view().steps()) {
      auto axis = Follow(step, spread.axis, request_.inputs[0]->info.shape.size());
      if (!axis.ok()) return axis.status();
      spread.axis = *axis;
    }
    std::vector<PartRunner::Part> parts;
    for (const ArrayPtr& part : shards.parts)
      parts.push_back({.operation = &operation_, .inputs = {part}, .targets = {{}}});
    auto made = Whole(spread, std::move(parts));
    if (made.ok()) (*made)[0]->info = Contiguous(whole_[0].dtype, whole_[0].shape);
    return made;
  }

  // Where the split axis is after a step.
  static absl::StatusOr<int> Follow(const v1::View::Step& step, int split, size_t input_rank) {
    auto refuse = [](const char* what) {
      return NotImplemented(absl::StrCat("view of a sharded array: ", what),
                            absl::StrCat("not implemented over several devices: view.input, ", what,
                                         "; Copy the array to one device first"));
    };
    // Steps before this one may have dropped axes: negative numbers are not followed then.
    if (step.has_slice()) {
      const v1::View::Slice& slice = step.slice();
      if (slice.axis() < 0) return refuse("a slice of an axis counted from the end");
      if (slice.axis() == split) return refuse("a slice of the axis that is split");
      return slice.index() && slice.axis() < split ? split - 1 : split;
    }
    if (step.has_transpose()) {
      const auto& axes = step.transpose().axes();
      if (axes.empty()) {
        return static_cast<int>(input_rank) - 1 - split;
      }
      for (int i = 0; i < axes.size(); ++i) {
        if (axes[i] < 0) return refuse("a transpose by axes counted from the end");
        if (axes[i] == split) return i;
      }
    }
    return refuse(step.has_reshape() ? "a reshape" : "a broadcast");
  }

  // --- everything that is divided ---

  absl::StatusOr<ops::Division> Division() const {
    std::vector<ops::SpreadArray> inputs, existing;
    std::vector<ops::Spread> spreads;
    spreads.reserve(request_.inputs.size() + request_.existing.size());
    auto describe = [&](const ArrayPtr& array, const std::string& field) {
      ops::SpreadArray out{.field = field};
      if (array == nullptr) return out;
      out.shape = array->info.shape;
      if (array->shards != nullptr) {
        spreads.push_back(SpreadOf(*array->shards));
        out.spread = &spreads.back();
      }
      return out;
    };
    for (size_t i = 0; i < request_.inputs.size(); ++i)
      inputs.push_back(describe(request_.inputs[i], request_.input_fields[i]));
    for (size_t j = 0; j < request_.existing.size(); ++j) {
      const ArrayPtr& array = request_.existing[j];
      existing.push_back(describe(array, array != nullptr ? request_.output_fields[j] : ""));
    }
    std::vector<std::vector<int64_t>> outputs;
    for (const ArrayInfo& output : whole_) outputs.push_back(output.shape);
    return ops::Divide(operation_, inputs, existing, outputs);
  }

  // What part [begin, end) on `device` takes of an input.
  absl::StatusOr<ArrayPtr> PartOf(size_t input, int axis, int64_t begin, int64_t end, int device) {
    const ArrayPtr& array = request_.inputs[input];
    const bool split = array != nullptr && array->shards != nullptr && !array->shards->replicated;
    ArrayPtr own = OnDevice(array, device);
    if (array == nullptr || split || axis < 0) return own;
    ArrayPtr view = ViewOf(own, ops::SliceOf(own->info, axis, begin, end));
    const bool moves = array->shards == nullptr && own->buffer->size > kCutBytes &&
                       own->buffer->replicas.count(device) == 0;
    if (!moves) return view;
    const v1::Operation copy = CopyOperation({}, /*existing=*/false);
    auto made = runner_.Run({.operation = &copy, .inputs = {view}, .targets = {{}}});
    if (!made.ok()) return made.status();
    return (*made)[0];
  }

  absl::StatusOr<ArrayList> RunDivided() {
    auto division = Division();
    if (!division.ok()) return division.status();
    if (request_.device >= 0 && !division->partial) {
      return InvalidField(
          v1::ERROR_REASON_INVALID_FIELD, "device",
          "the operation runs where its arrays are, on several devices; leave this unset");
    }
    const size_t num_parts = division->devices.size();
    const auto begin = division->replicated ? std::vector<int64_t>(num_parts + 1, 0)
                                            : ops::SplitAxis(division->length, num_parts);
    if (division->partial) return RunPartial(*division, begin);

    // All is planned before any of it is accepted.
    int64_t bytes = 0;
    for (size_t j = 0; j < whole_.size(); ++j)
      bytes += request_.existing[j] == nullptr ? whole_[j].size_bytes() : 0;
    if (division->replicated) bytes *= static_cast<int64_t>(num_parts);
    const size_t num_inputs = request_.inputs.size();
    if (absl::Status s = runner_.Admit(num_parts * (1 + num_inputs), bytes); !s.ok()) return s;
    std::vector<PartRunner::Part> parts;
    for (size_t i = 0; i < num_parts; ++i) {
      PartRunner::Part part{.operation = &operation_, .device = division->devices[i]};
      for (size_t k = 0; k < num_inputs; ++k) {
        auto own = PartOf(k, division->input_axes[k], begin[i], begin[i + 1], part.device);
        if (!own.ok()) return own.status();
        part.inputs.push_back(*std::move(own));
      }
      for (const ArrayPtr& array : request_.existing)
        part.targets.push_back({array != nullptr ? array->shards->parts[i] : nullptr});
      if (absl::Status s = PlanPart(parts, &part); !s.ok()) return s;
      parts.push_back(std::move(part));
    }
    std::vector<ArrayList> results(whole_.size());
    for (PartRunner::Part& part : parts) {
      auto made = runner_.Run(std::move(part));
      if (!made.ok()) return made.status();
      for (size_t j = 0; j < results.size(); ++j) results[j].push_back((*made)[j]);
    }
    ArrayList outputs;
    for (size_t j = 0; j < results.size(); ++j) {
      if (request_.existing[j] != nullptr) {
        outputs.push_back(request_.existing[j]);
        continue;
      }
      const ops::Spread spread{std::max(0, division->output_axes[j]), division->replicated,
                               division->devices};
      outputs.push_back(WholeOf(whole_[j], spread, std::move(results[j])));
    }
    return outputs;
  }

  // Parts of one shape, which lie alike, have one plan.
  absl::Status PlanPart(const std::vector<PartRunner::Part>& earlier, PartRunner::Part* part) {
    std::vector<ops::Input> inputs, existing;
    for (const ArrayPtr& input : part->inputs) inputs.push_back(InfoOf(input));
    for (const auto& target : part->targets) existing.push_back(InfoOf(target.existing));
    if (!earlier.empty()) {
      const PartRunner::Part& last = earlier.back();
      bool same = true;
      for (size_t i = 0; i < inputs.size(); ++i) same = same && inputs[i] == InfoOf(last.inputs[i]);
      for (size_t j = 0; j < existing.size(); ++j)
        same = same && existing[j] == InfoOf(last.targets[j].existing);
      if (same) {
        part->planned = last.planned;
        return absl::OkStatus();
      }
    }
    auto plan = runner_.Plan(*part->operation, inputs, existing);
    if (!plan.ok()) return plan.status();
    part->planned = *std::move(plan);
    return absl::OkStatus();
  }

  absl::StatusOr<ArrayList> RunPartial(const ops::Division& division,
                                       const std::vector<int64_t>& begin) {
    // An existing output may have another type than the result.
    auto alone = runner_.Plan(operation_, inputs_, std::vector<ops::Input>(existing_.size()));
    if (!alone.ok()) return alone.status();
    auto split = ops::SplitReduction(operation_, alone->outputs[0].dtype);
    if (!split.ok()) return split.status();
    const size_t num_parts = division.devices.size(), num_inputs = request_.inputs.size();
    if (absl::Status s = runner_.Admit(num_parts * (num_inputs + split->steps.size()) + 1,
                                       whole_[0].size_bytes());
        !s.ok())
      return s;

    std::vector<PartRunner::Part> parts;
    std::vector<ops::PartPlace> places;
    for (size_t i = 0; i < num_parts; ++i) {
      // Nothing to add; but of nothing at all the first part makes the result.
      const bool empty = begin[i] == begin[i + 1];
      if (empty && (division.length > 0 || i > 0)) continue;
      const auto& steps = places.empty() ? split->first_steps : split->steps;
      places.push_back({begin[i], begin[i + 1] - begin[i]});
      ArrayList inputs;
      for (size_t k = 0; k < num_inputs; ++k) {
        auto own = PartOf(k, division.input_axes[k], begin[i], begin[i + 1], division.devices[i]);
        if (!own.ok()) return own.status();
        inputs.push_back(*std::move(own));
      }
      for (const ops::PartialStep& step : steps) {
        PartRunner::Part part{.operation = &step.operation, .device = division.devices[i]};
        part.inputs = step.of_mask ? MaskOf(inputs, begin[i + 1] - begin[i], division) : inputs;
        part.targets = {{}};
        std::vector<ops::Input> infos;
        for (const ArrayPtr& input : part.inputs) infos.push_back(InfoOf(input));
        auto plan = runner_.Plan(step.operation, infos, {std::nullopt});
        if (!plan.ok()) return plan.status();
        part.planned = step.accumulated ? ops::WithoutFinish(*std::move(plan)) : *std::move(plan);
        parts.push_back(std::move(part));
      }
    }
    std::vector<ops::Input> partial_infos;
    for (const auto& part : parts) partial_infos.push_back(part.planned->outputs[0]);
    const ArrayInfo& to = whole_[0];
    auto combine =
        ops::PlanCombine(*split, partial_infos, places, LoopShape(), LoopAxis(division), to);
    if (!combine.ok()) return combine.status();

    PartRunner::Part last{.operation = &operation_,
                          .targets = {{request_.existing[0]}},
                          .device = request_.device >= 0 ? request_.device : division.devices[0],
                          .planned = *std::move(combine)};
    for (PartRunner::Part& part : parts) {
      auto made = runner_.Run(std::move(part));
      if (!made.ok()) return made.status();
      last.inputs.push_back((*made)[0]);
    }
    return runner_.Run(std::move(last));
  }

  // The shape over which is reduced, and its split axis.
  std::vector<int64_t> LoopShape() const {
    std::vector<ops::Shape> shapes;
    if (!operation_.has_reduction()) return request_.inputs[0]->info.shape;
    for (const ArrayPtr& input : request_.inputs) shapes.push_back(input->info.shape);
    return *ops::BroadcastShapes(shapes, "reduction");
  }
  int LoopAxis(const ops::Division& division) const {
    const size_t rank = LoopShape().size();
    for (size_t i = 0; i < request_.inputs.size(); ++i) {
      if (division.input_axes[i] < 0) continue;
      return division.input_axes[i] +
             static_cast<int>(rank - std::min(rank, request_.inputs[i]->info.shape.size()));
    }
    return 0;
  }

  // A part's mask, in the shape of what it masks.
  ArrayList MaskOf(const ArrayList& inputs, int64_t length, const ops::Division& division) const {
    const ArrayPtr& mask = inputs.back();
    ArrayInfo info = mask->info;
    info.shape = ops::PartShape(LoopShape(), LoopAxis(division), length);
    info.strides = ops::BroadcastStrides(mask->info, info.shape);
    return {ViewOf(mask, std::move(info))};
  }

  const ShardedOperation& request_;
  const v1::Operation& operation_;
  PartRunner& runner_;
  std::vector<ops::Input> inputs_, existing_;
  std::vector<ArrayInfo> whole_;  // the outputs
};

}  // namespace

absl::StatusOr<ArrayList> RunSharded(const ShardedOperation& operation, PartRunner& runner) {
  return Launch(operation, runner).Run();
}

ArrayPtr WholeOf(const ArrayInfo& info, const ops::Spread& spread, ArrayList parts) {
  auto whole = std::make_shared<Array>();
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

}  // namespace stride::scheduler
