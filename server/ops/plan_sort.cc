#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/operation_kind.h"
#include "server/ops/routine_plan.h"

namespace stride::ops {
namespace {

constexpr int kMostKeys = 32;

// Operands that decide the order of what is equal before them.
absl::StatusOr<std::vector<RoutineOperand>> ReadMoreKeys(const v1::Sort& sort, Inputs inputs,
                                                         const Shape& shape) {
  if (sort.more_keys_size() > 0 && !sort.indices()) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "sort.more_keys",
                        "several keys give an order of places; set `indices`");
  }
  if (sort.more_keys_size() > kMostKeys) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, "sort.more_keys",
        absl::StrCat("there are at most ", kMostKeys, "; got ", sort.more_keys_size()));
  }
  std::vector<RoutineOperand> keys;
  for (int i = 0; i < sort.more_keys_size(); ++i) {
    const std::string field = absl::StrCat("sort.more_keys[", i, "]");
    auto key = NeedArray(inputs[i + 1], field);
    if (!key.ok()) return key.status();
    if (key->shape != shape) {
      return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, field,
                          absl::StrCat("every key has the input's shape: ", ToString(key->shape),
                                       " for ", ToString(shape)));
    }
    keys.push_back({.slot = static_cast<uint32_t>(i + 1), .array = *key});
  }
  return keys;
}

absl::StatusOr<Plan> PlanSort(const v1::Sort& sort, Inputs inputs, const Input& existing) {
  auto input = NeedArray(inputs[0], "sort.input");
  if (!input.ok()) return input.status();
  auto axis = NormalizeAxis(sort.has_axis() ? sort.axis() : -1, input->shape.size(), "sort.axis");
  if (!axis.ok()) return axis.status();
  auto keys = ReadMoreKeys(sort, inputs, input->shape);
  if (!keys.ok()) return keys.status();
  auto output = ChooseOutput(sort.indices() ? DType::kInt64 : input->dtype, input->shape, existing);
  if (!output.ok()) return output.status();
  RoutineSpec spec;
  spec.routine = wire::RoutineCode::ROUTINE_SORT;
  spec.extents = input->shape;
  spec.extents[*axis] = 1;
  spec.operands = {{.slot = 0, .array = *input}};
  spec.operands.insert(spec.operands.end(), keys->begin(), keys->end());
  spec.num_inputs = static_cast<int>(spec.operands.size());
  spec.operands.push_back({.slot = static_cast<uint32_t>(spec.num_inputs), .array = *output});
  for (RoutineOperand& operand : spec.operands) {
    operand.strides = StridesWithout(operand.array, *axis, *axis + 1);
    operand.AddOwn(*axis);
  }
  spec.options = {sort.descending(), sort.indices(), 0, !keys->empty()};
  spec.outputs = {*output};
  return MakeRoutinePlan(std::move(spec));
}

absl::StatusOr<Plan> PlanTopK(const v1::TopK& top_k, Inputs inputs,
                              absl::Span<const Input> existing) {
  auto input = NeedArray(inputs[0], "top_k.input");
  if (!input.ok()) return input.status();
  auto axis =
      NormalizeAxis(top_k.has_axis() ? top_k.axis() : -1, input->shape.size(), "top_k.axis");
  if (!axis.ok()) return axis.status();
  if (top_k.k() < 1 || top_k.k() > input->shape[*axis]) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "top_k.k",
                        absl::StrCat("as many elements cannot be had. Elements along the axis: ",
                                     input->shape[*axis], ", k: ", top_k.k()));
  }
  Shape shape = input->shape;
  shape[*axis] = top_k.k();
  RoutineSpec spec;
  spec.routine = wire::RoutineCode::ROUTINE_TOP_K;
  spec.extents = shape;
  spec.extents[*axis] = 1;
  spec.operands = {{.slot = 0, .array = *input}};
  for (size_t j = 0; j < 2; ++j) {
    auto output =
        ChooseOutput(j == 0 ? input->dtype : DType::kInt64, shape,
                     j < existing.size() ? existing[j] : Input(), absl::StrCat("outputs[", j, "]"));
    if (!output.ok()) return output.status();
    spec.operands.push_back({.slot = static_cast<uint32_t>(1 + j), .array = *output});
    spec.outputs.push_back(*output);
  }
  for (RoutineOperand& operand : spec.operands) {
    operand.strides = StridesWithout(operand.array, *axis, *axis + 1);
    operand.AddOwn(*axis);
  }
  spec.num_inputs = 1;
  spec.options = {!top_k.smallest(), 1, 1, 0};
  return MakeRoutinePlan(std::move(spec));
}

absl::StatusOr<Plan> PlanSearch(const v1::Search& search, Inputs inputs, const Input& existing) {
  auto sorted = NeedArray(inputs[0], "search.sorted");
  if (!sorted.ok()) return sorted.status();
  auto values = NeedArray(inputs[1], "search.values");
  if (!values.ok()) return values.status();
  if (sorted->shape.size() != 1) {
    return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, "search.sorted",
                        absl::StrCat("the sorted array has one axis, not ", sorted->shape.size()));
  }
  auto output = ChooseOutput(DType::kInt64, values->shape, existing);
  if (!output.ok()) return output.status();
  const DType common = PromoteTypes(sorted->dtype, values->dtype);
  RoutineSpec spec;
  spec.routine = wire::RoutineCode::ROUTINE_SEARCH;
  spec.extents = values->shape;
  RoutineOperand row{.slot = 0, .array = *sorted};
  row.AddOwn(0);
  row.strides.assign(values->shape.size(), 0);
  spec.operands = {std::move(row),
                   {.slot = 1, .array = *values, .strides = values->strides},
                   {.slot = 2, .array = *output, .strides = output->strides}};
  spec.num_inputs = 2;
  spec.options = {search.right()};
  spec.programs = {CastProgram({sorted->dtype, common}), CastProgram({values->dtype, common})};
  spec.outputs = {*output};
  return MakeRoutinePlan(std::move(spec));
}

// Every operand with the batch's axis in front.
absl::Status RepeatAll(Batcher& batcher, v1::Operation* operation) {
  for (v1::Operand* operand : batcher.OperandsOf(operation)) {
    auto whole = batcher.Broadcast(*batcher.Find(*operand));
    if (!whole.ok()) return whole.status();
    batcher.Replace(operand, *whole);
  }
  return absl::OkStatus();
}

absl::Status BatchSort(Batcher& batcher, v1::Operation* operation) {
  auto* sort = operation->mutable_sort();
  const size_t rank = batcher.Find(sort->input())->rank();
  if (rank == 0) return batcher.NoRule(*operation);
  if (sort->more_keys_size() > 0) {
    if (absl::Status status = RepeatAll(batcher, operation); !status.ok()) return status;
  }
  if (!sort->has_axis()) return absl::OkStatus();
  return batcher.SetShifted(sort, sort->axis(), rank, "sort.axis");
}

absl::Status BatchTopK(Batcher& batcher, v1::Operation* operation) {
  auto* top_k = operation->mutable_top_k();
  const size_t rank = batcher.Find(top_k->input())->rank();
  if (rank == 0) return batcher.NoRule(*operation);
  return batcher.SetShifted(top_k, top_k->has_axis() ? top_k->axis() : -1, rank, "top_k.axis");
}

absl::Status BatchSearch(Batcher& batcher, v1::Operation* operation) {
  return batcher.IsBatched(operation->search().sorted()) ? batcher.NoRule(*operation)
                                                         : absl::OkStatus();
}

int TopKResults(const v1::Operation&, Inputs, const FunctionTable*) { return 2; }

}  // namespace

const OperationKind kSortKind = {
    .name = "sort",
    .detail = [](const v1::Operation& o) -> std::string {
      if (o.sort().more_keys_size() > 0) return "lexsort";
      return o.sort().indices() ? "argsort" : "sort";
    },
    .operands =
        [](const v1::Operation& o, OperandList& list) {
          list.Add(o.sort().input());
          list.AddEach(o.sort().more_keys());
        },
    .plan = PlanBy<&v1::Operation::sort, PlanSort>,
    .rules = {OneResult, WholeKey, BatchSort, Undivided},
    .lists = Bounded<&v1::Operation::sort, kMaxListedAxes, &v1::Sort::more_keys_size>,
};

const OperationKind kTopKKind = {
    .name = "top_k",
    .operands = Reads<&v1::Operation::top_k, &v1::TopK::input>,
    .plan = PlanBy<&v1::Operation::top_k, PlanTopK>,
    .rules = {TopKResults, WholeKey, BatchTopK, Undivided},
};

const OperationKind kSearchKind = {
    .name = "search",
    .label = "searchsorted",
    .operands = Reads<&v1::Operation::search, &v1::Search::sorted, &v1::Search::values>,
    .plan = PlanBy<&v1::Operation::search, PlanSearch>,
    .rules = {OneResult, WholeKey, BatchSearch, Undivided},
};

}  // namespace stride::ops
