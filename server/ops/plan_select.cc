#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/operation_kind.h"
#include "server/ops/routine_plan.h"

namespace stride::ops {
namespace {

constexpr char kRanks[] = "select.ranks";

// The ranks as they lie along the input's axes, and how many they are. The loop's strides are 0
// where all slices have the same.
absl::StatusOr<RoutineOperand> ReadRanks(const Input& input, const ArrayInfo& of, size_t axis) {
  auto ranks = NeedArray(input, kRanks);
  if (!ranks.ok()) return ranks.status();
  if (!IsInteger(ranks->dtype)) {
    return InvalidField(v1::ERROR_REASON_DATA_TYPE_MISMATCH, kRanks,
                        absl::StrCat("ranks are integers, not ", std::string(Name(ranks->dtype))));
  }
  RoutineOperand operand{.slot = 1, .array = *ranks};
  const size_t rank = of.shape.size();
  if (ranks->shape.size() == 1) {
    operand.strides.assign(rank, 0);
    operand.AddOwn(0);
    return operand;
  }
  bool fits = ranks->shape.size() == rank;
  for (size_t i = 0; fits && i < rank; ++i)
    fits = i == axis || ranks->shape[i] == 1 || ranks->shape[i] == of.shape[i];
  if (!fits) {
    return InvalidField(
        v1::ERROR_REASON_SHAPE_MISMATCH, kRanks,
        absl::StrCat("ranks have one axis, or broadcast with the input but along its axis ", axis,
                     ": ", ToString(ranks->shape), " for ", ToString(of.shape)));
  }
  operand.strides = StridesWithout(*ranks, axis, axis + 1);
  for (size_t i = 0; i < rank; ++i) {
    if (ranks->shape[i] == 1) operand.strides[i] = 0;
  }
  operand.AddOwn(axis);
  return operand;
}

// Each place once, ascending, in [0, n).
absl::StatusOr<std::vector<int64_t>> ReadPlaces(const v1::Partition& partition, int64_t n) {
  std::vector<int64_t> places;
  for (int i = 0; i < partition.kth_size(); ++i) {
    const int64_t place = partition.kth(i);
    if (place < -n || place >= n) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, absl::StrCat("partition.kth[", i, "]"),
                          absl::StrCat("the axis has no such place. Place: ", place,
                                       ", elements along the axis: ", n));
    }
    places.push_back(place < 0 ? place + n : place);
  }
  if (places.empty()) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "partition.kth", "give at least one place");
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

absl::StatusOr<Plan> PlanSelect(const v1::Select& select, Inputs inputs, const Input& existing) {
  auto input = NeedArray(inputs[0], "select.input");
  if (!input.ok()) return input.status();
  auto axis =
      NormalizeAxis(select.has_axis() ? select.axis() : -1, input->shape.size(), "select.axis");
  if (!axis.ok()) return axis.status();
  auto ranks = ReadRanks(inputs[1], *input, *axis);
  if (!ranks.ok()) return ranks.status();
  Shape shape = input->shape;
  shape[*axis] = ranks->own_extents[0];
  auto output = ChooseOutput(input->dtype, shape, existing);
  if (!output.ok()) return output.status();
  RoutineSpec spec;
  spec.routine = wire::RoutineCode::ROUTINE_SELECT;
  spec.extents = input->shape;
  spec.extents[*axis] = 1;
  spec.operands = {{.slot = 0, .array = *input}, *std::move(ranks), {.slot = 2, .array = *output}};
  for (RoutineOperand* operand : {&spec.operands[0], &spec.operands[2]}) {
    operand->strides = StridesWithout(operand->array, *axis, *axis + 1);
    operand->AddOwn(*axis);
  }
  spec.num_inputs = 2;
  spec.options = {0, 0, 0, 0};
  spec.outputs = {*output};
  return MakeRoutinePlan(std::move(spec));
}

absl::StatusOr<Plan> PlanPartition(const v1::Partition& partition, Inputs inputs,
                                   const Input& existing) {
  auto input = NeedArray(inputs[0], "partition.input");
  if (!input.ok()) return input.status();
  auto axis = NormalizeAxis(partition.has_axis() ? partition.axis() : -1, input->shape.size(),
                            "partition.axis");
  if (!axis.ok()) return axis.status();
  auto places = ReadPlaces(partition, input->shape[*axis]);
  if (!places.ok()) return places.status();
  auto output =
      ChooseOutput(partition.indices() ? DType::kInt64 : input->dtype, input->shape, existing);
  if (!output.ok()) return output.status();
  RoutineSpec spec;
  // Many places make an order of nearly all elements.
  const bool sorts = places->size() > kMostPartitionPlaces;
  spec.routine = sorts ? wire::RoutineCode::ROUTINE_SORT : wire::RoutineCode::ROUTINE_PARTITION;
  spec.extents = input->shape;
  spec.extents[*axis] = 1;
  spec.operands = {{.slot = 0, .array = *input}, {.slot = 1, .array = *output}};
  for (RoutineOperand& operand : spec.operands) {
    operand.strides = StridesWithout(operand.array, *axis, *axis + 1);
    operand.AddOwn(*axis);
  }
  spec.num_inputs = 1;
  spec.options = {0, partition.indices(), 0, 0};
  for (size_t i = 0; !sorts && i < places->size(); ++i) {
    auto place = EncodeScalar(Integer{(*places)[i]}, DType::kInt64, "partition.kth");
    if (!place.ok()) return place.status();
    spec.scalars.push_back(*place);
  }
  spec.outputs = {*output};
  return MakeRoutinePlan(std::move(spec));
}

absl::Status BatchSelect(Batcher& batcher, v1::Operation* operation) {
  auto* select = operation->mutable_select();
  const size_t rank = batcher.Find(select->input())->rank();
  if (rank == 0) return batcher.NoRule(*operation);
  auto axis = batcher.Shifted(select->has_axis() ? select->axis() : -1, rank, "select.axis");
  if (!axis.ok()) return axis.status();
  select->set_axis(*axis);
  const Batched ranks = *batcher.Find(select->ranks());
  // Ranks of one axis that the batch's elements share are the same for all slices.
  if (!ranks.batched && ranks.rank() == 1) return absl::OkStatus();
  auto own = batcher.Broadcast(ranks);
  if (own.ok() && ranks.rank() == 1) {
    Shape shape(rank + 1, 1);
    shape[0] = own->info.shape[0];
    shape[*axis] = own->info.shape[1];
    own = batcher.Reshaped(*own, shape);
  }
  if (!own.ok()) return own.status();
  batcher.Replace(select->mutable_ranks(), *own);
  auto input = batcher.Broadcast(*batcher.Find(select->input()));
  if (!input.ok()) return input.status();
  batcher.Replace(select->mutable_input(), *input);
  return absl::OkStatus();
}

absl::Status BatchPartition(Batcher& batcher, v1::Operation* operation) {
  auto* partition = operation->mutable_partition();
  const size_t rank = batcher.Find(partition->input())->rank();
  if (rank == 0) return batcher.NoRule(*operation);
  const int32_t axis = partition->has_axis() ? partition->axis() : -1;
  return batcher.SetShifted(partition, axis, rank, "partition.axis");
}

}  // namespace

const OperationKind kSelectKind = {
    .name = "select",
    .operands = Reads<&v1::Operation::select, &v1::Select::input, &v1::Select::ranks>,
    .plan = PlanBy<&v1::Operation::select, PlanSelect>,
    .rules = {OneResult, WholeKey, BatchSelect, Undivided},
};

const OperationKind kPartitionKind = {
    .name = "partition",
    .detail = [](const v1::Operation& o) -> std::string {
      return o.partition().indices() ? "argpartition" : "partition";
    },
    .operands = Reads<&v1::Operation::partition, &v1::Partition::input>,
    .plan = PlanBy<&v1::Operation::partition, PlanPartition>,
    .rules = {OneResult, WholeKey, BatchPartition, Undivided},
    .lists = Bounded<&v1::Operation::partition, kMaxListedInputs, &v1::Partition::kth_size>,
};

}  // namespace stride::ops
