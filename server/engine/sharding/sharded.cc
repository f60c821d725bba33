#include "server/engine/sharding/sharded.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/block_pool.h"
#include "server/base/error.h"
#include "server/engine/core/infos.h"
#include "server/engine/sharding/shard_layout.h"
#include "server/engine/sharding/sharded_copy.h"
#include "server/ops/operation_kind.h"
#include "server/ops/partial_results.h"
#include "server/ops/pieces.h"
#include "server/ops/shape.h"

namespace stride::engine {

using session::Array;
using ArrayPtr = std::shared_ptr<Array>;

namespace {

class Launch {
 public:
  Launch(const ShardedOperation& request, PartRunner& runner)
      : request_(request), operation_(*request.operation), runner_(runner) {}

  absl::StatusOr<ArrayList> Run() {
    auto planned = runner_.Plan(operation_, InfosOf(request_.inputs), InfosOf(request_.existing));
    if (!planned.ok()) return planned.status();
    const ops::Plan& whole = (*planned)->plan;
    whole_ = whole.outputs;
    if (absl::Status status = CheckWanted(); !status.ok()) return status;
    if (operation_.has_creation()) return Create(whole);
    if (operation_.has_copy() && !IsDividedCopy()) return CopySharded(request_, whole_[0], runner_);
    if (operation_.has_view() && IsSplit(request_.inputs[0])) return View();
    return RunDivided();
  }

 private:
  absl::Status CheckWanted() const {
    for (size_t j = 0; j < request_.wanted.size(); ++j) {
      const std::string field = absl::StrCat(request_.output_fields[j], ".sharding");
      if (!request_.wanted[j]) continue;
      if (!operation_.has_copy() && !operation_.has_creation()) {
        return NotImplemented(
            absl::StrCat("sharding of the result of ", ops::KindOf(operation_).name),
            absl::StrCat("not implemented: ", field, " of ", ops::KindOf(operation_).name,
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
                            "an array of another layout is copied; leave this unset");
      }
    }
    return absl::OkStatus();
  }

  static bool IsSplit(const ArrayPtr& array) {
    return array != nullptr && array->shards != nullptr && !array->shards->replicated;
  }

  // Part by part, as any elementwise operation: the target is there and is spread.
  bool IsDividedCopy() const {
    return request_.existing[0] != nullptr && request_.existing[0]->shards != nullptr;
  }

  // --- creation ---

  absl::StatusOr<ArrayList> Create(const ops::Plan& whole) {
    if (!request_.wanted[0]) {
      return NotImplemented("creation into a sharded array",
                            absl::StrCat("not implemented over several devices: a creation into ",
                                         request_.output_fields[0],
                                         ", which is spread; Copy a number into it, or make a new "
                                         "array"));
    }
    const ops::Spread& spread = *request_.wanted[0];
    const ArrayInfo& info = whole_[0];
    const auto begin = spread.replicated
                           ? std::vector<int64_t>(spread.devices.size())
                           : ops::SplitAxis(info.shape[spread.axis], spread.devices.size());
    int64_t outer = 1;
    for (int i = 0; i < spread.axis; ++i) outer *= info.shape[i];
    int64_t bytes = 0;
    std::vector<PartRunner::Part> parts;
    for (size_t i = 0; i < spread.devices.size(); ++i) {
      PartRunner::Part part{&operation_, {}, {{}}, spread.devices[i]};
      const ArrayInfo own = PartInfo(info, spread, i);
      int64_t first = begin[i];
      for (size_t a = static_cast<size_t>(spread.axis) + 1; a < info.shape.size(); ++a)
        first *= info.shape[a];
      // The values of a fill do not depend on their places.
      const bool is_placeless =
          operation_.creation().has_fill() || operation_.creation().has_empty();
      if (outer > 1 && !spread.replicated && !is_placeless) {
        return NotImplemented(
            "creation split along this axis",
            absl::StrCat("not implemented: ", request_.output_fields[0],
                         ".sharding of a range or random numbers along axis ", spread.axis,
                         "; create it split along axis 0 and Copy it"));
      }
      auto planned = ops::PartOfCreation(whole, outer > 1 ? 0 : first, own);
      if (!planned) {
        return NotImplemented("sharded creation",
                              "not implemented over several devices: this creation; create the "
                              "array on one device and Copy it");
      }
      part.planned = MakePlanned(*std::move(planned));
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

  // --- views ---

  absl::StatusOr<ArrayList> View() {
    const session::Shards& shards = *request_.inputs[0]->shards;
    ops::Spread spread = SpreadOf(shards);
    auto rank = static_cast<int>(request_.inputs[0]->info->shape.size());
    for (const v1::View::Step& step : operation_.view().steps()) {
      auto axis = Follow(step, spread.axis, &rank);
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

  // Where the split axis is after a step, which is known to be right. `rank`: of what it is applied
  // to, and then of its result.
  static absl::StatusOr<int> Follow(const v1::View::Step& step, int split, int* rank) {
    auto refuse = [](const char* what) {
      return NotImplemented(absl::StrCat("view of a sharded array: ", what),
                            absl::StrCat("not implemented over several devices: view.input, ", what,
                                         "; Copy the array to one device first"));
    };
    auto from_first = [&](int axis) { return axis < 0 ? axis + *rank : axis; };
    if (step.has_slice()) {
      const v1::View::Slice& slice = step.slice();
      const int axis = from_first(slice.axis());
      if (axis == split) return refuse("a slice of the axis that is split");
      if (!slice.index()) return split;
      --*rank;
      return axis < split ? split - 1 : split;
    }
    if (step.has_transpose()) {
      const auto& axes = step.transpose().axes();
      for (int i = 0; i < axes.size(); ++i) {
        if (from_first(axes[i]) == split) return i;
      }
      return *rank - 1 - split;
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
      out.shape = array->info->shape;
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

  // The elements of an input that part [begin, end) on `device` uses.
  absl::StatusOr<ArrayPtr> PartOf(size_t input, int axis, int64_t begin, int64_t end, int device) {
    const ArrayPtr& array = request_.inputs[input];
    ArrayPtr own = OnDevice(array, device);
    if (array == nullptr || IsSplit(array) || axis < 0) return own;
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
    const Infos inputs = InfosOf(part->inputs), existing = ExistingOf(part->targets);
    if (!earlier.empty()) {
      const PartRunner::Part& last = earlier.back();
      if (Alike(inputs, InfosOf(last.inputs)) && Alike(existing, ExistingOf(last.targets))) {
        part->planned = last.planned;
        return absl::OkStatus();
      }
    }
    auto planned = runner_.Plan(*part->operation, inputs, existing);
    if (!planned.ok()) return planned.status();
    part->planned = *std::move(planned);
    return absl::OkStatus();
  }

  static Infos ExistingOf(const std::vector<PartRunner::Target>& targets) {
    Infos infos;
    for (const auto& target : targets) infos.push_back(InfoOf(target.existing));
    return infos;
  }
  static bool Alike(const Infos& some, const Infos& others) {
    return std::equal(some.begin(), some.end(), others.begin(), others.end(),
                      [](const ArrayInfo* a, const ArrayInfo* b) {
                        return a == b || (a != nullptr && b != nullptr && *a == *b);
                      });
  }

  absl::StatusOr<ArrayList> RunPartial(const ops::Division& division,
                                       const std::vector<int64_t>& begin) {
    const size_t num_parts = division.devices.size(), num_inputs = request_.inputs.size();
    if (num_parts == 1) return RunAlone(division);
    // An existing output may have another type than the result.
    auto alone =
        runner_.Plan(operation_, InfosOf(request_.inputs), Infos(request_.existing.size()));
    if (!alone.ok()) return alone.status();
    auto made_split = Split(**alone);
    if (!made_split.ok()) return made_split.status();
    const ops::PartialResults* const split = made_split->get();
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
        auto planned = runner_.Plan(step.operation, InfosOf(part.inputs), {nullptr});
        if (!planned.ok()) return planned.status();
        part.planned =
            step.accumulated ? WithoutFinish(**planned, *step.accumulated) : *std::move(planned);
        parts.push_back(std::move(part));
      }
    }
    std::vector<ops::Input> partials;
    for (const auto& part : parts) partials.emplace_back(part.planned->plan.outputs[0]);
    auto combine = Combine(**alone, *split, std::move(partials), places, LoopAxis(division));
    if (!combine.ok()) return combine.status();

    PartRunner::Part last{.operation = &operation_,
                          .targets = {{request_.existing[0]}},
                          .device = request_.device >= 0 ? request_.device : division.devices[0],
                          .planned = *std::move(combine),
                          .reads_peers = true};
    for (PartRunner::Part& part : parts) {
      auto made = runner_.Run(std::move(part));
      if (!made.ok()) return made.status();
      last.inputs.push_back((*made)[0]);
    }
    return runner_.Run(std::move(last));
  }

  // --- plans of partial results, kept with the plan that they are made from ---

  absl::StatusOr<std::shared_ptr<const ops::PartialResults>> Split(const Planned& alone) const {
    auto& kept = alone.spread.split;
    if (kept == nullptr) {
      auto split = ops::SplitReduction(operation_, alone.plan.outputs[0].dtype);
      if (!split.ok()) return split.status();
      kept = std::make_shared<const ops::PartialResults>(*std::move(split));
    }
    return kept;
  }

  static std::shared_ptr<const Planned> WithoutFinish(const Planned& whole, int input) {
    auto& kept = whole.spread.without_finish[static_cast<size_t>(input)];
    if (kept == nullptr) kept = MakePlanned(ops::WithoutFinish(whole.plan, input));
    return kept;
  }

  absl::StatusOr<std::shared_ptr<const Planned>> Combine(const Planned& alone,
                                                         const ops::PartialResults& split,
                                                         std::vector<ops::Input> partials,
                                                         std::vector<ops::PartPlace> places,
                                                         int axis) const {
    SpreadPlans& kept = alone.spread;
    const ArrayInfo& to = whole_[0];
    const bool same = kept.combine != nullptr && kept.axis == axis && kept.places == places &&
                      kept.partials == partials && kept.combine->plan.outputs[0] == to;
    if (same) return kept.combine;
    auto plan = ops::PlanCombine(split, partials, places, LoopShape(), axis, to);
    if (!plan.ok()) return plan.status();
    kept.combine = MakePlanned(*std::move(plan));
    kept.partials = std::move(partials);
    kept.places = std::move(places);
    kept.axis = axis;
    return kept.combine;
  }

  // One part has all there is to sum.
  absl::StatusOr<ArrayList> RunAlone(const ops::Division& division) {
    if (absl::Status s = runner_.Admit(1, whole_[0].size_bytes()); !s.ok()) return s;
    PartRunner::Part part{.operation = &operation_,
                          .targets = {{request_.existing[0]}},
                          .device = request_.device >= 0 ? request_.device : division.devices[0]};
    for (const ArrayPtr& input : request_.inputs)
      part.inputs.push_back(OnDevice(input, division.devices[0]));
    return runner_.Run(std::move(part));
  }

  // The shape over which is reduced, and its split axis.
  std::vector<int64_t> LoopShape() const {
    std::vector<ops::Shape> shapes;
    if (!operation_.has_reduction()) return request_.inputs[0]->info->shape;
    for (const ArrayPtr& input : request_.inputs) {
      if (input != nullptr) shapes.push_back(input->info->shape);  // a number has none
    }
    return *ops::BroadcastShapes(shapes, "reduction");
  }
  int LoopAxis(const ops::Division& division) const {
    const size_t rank = LoopShape().size();
    for (size_t i = 0; i < request_.inputs.size(); ++i) {
      if (division.input_axes[i] < 0) continue;
      return division.input_axes[i] +
             static_cast<int>(rank - std::min(rank, request_.inputs[i]->info->shape.size()));
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
  std::vector<ArrayInfo> whole_;  // the outputs
};

}  // namespace

absl::StatusOr<ArrayList> RunSharded(const ShardedOperation& operation, PartRunner& runner) {
  return Launch(operation, runner).Run();
}

}  // namespace stride::engine
