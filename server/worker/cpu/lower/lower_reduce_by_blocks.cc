#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/ops/reduce_access.h"
#include "server/ops/reduce_by_blocks.h"
#include "server/store/dtype.h"
#include "server/worker/cpu/lower/block_program.h"
#include "server/worker/cpu/lower/lowering.h"
#include "server/worker/cpu/lower/run_reduce.h"
#include "server/worker/cpu/lower/scratch.h"

namespace stride::cpu {
namespace {

using Extents = google::protobuf::RepeatedField<int64_t>;

absl::Status Broken(const char* what) {
  return absl::InternalError(absl::StrCat("a reduction by blocks is broken: ", what));
}

// One axis at least, as every elementwise launch has.
void AddAxes(const Extents& extents, wire::ElementwiseLaunch* launch) {
  launch->mutable_extents()->MergeFrom(extents);
}

void SetContiguous(const Extents& extents, int32_t dtype, wire::Operand* operand) {
  operand->set_dtype(dtype);
  operand->mutable_strides()->Resize(extents.size(), 0);
  int64_t step = ItemSize(static_cast<DType>(dtype));
  for (int i = extents.size(); i-- > 0;) {
    operand->set_strides(i, step);
    step *= extents[i];
  }
}

// Strides of the axes [begin, end) of `from`.
void AddStrides(const wire::Operand& from, int begin, int end, wire::Operand* operand) {
  for (int i = begin; i < end; ++i) operand->add_strides(from.strides(i));
}

// From the inputs to values that lie one after another.
wire::ElementwiseLaunch MapLaunch(const wire::ReduceLaunch& launch, bool columns) {
  wire::ElementwiseLaunch map;
  AddAxes(columns ? launch.reduced_extents() : launch.kept_extents(), &map);
  AddAxes(columns ? launch.kept_extents() : launch.reduced_extents(), &map);
  const int kept = launch.kept_extents_size(), all = kept + launch.reduced_extents_size();
  if (all == 0) map.add_extents(1);
  for (const wire::Operand& input : launch.inputs()) {
    wire::Operand* operand = map.add_inputs();
    operand->set_dtype(input.dtype());
    AddStrides(input, columns ? kept : 0, columns ? all : kept, operand);
    AddStrides(input, columns ? 0 : kept, columns ? kept : all, operand);
    if (all == 0) operand->add_strides(0);
  }
  SetContiguous(map.extents(), launch.by_blocks().mapped_dtype(), map.add_outputs());
  *map.mutable_scalars() = launch.map_scalars();
  *map.mutable_by_blocks() = launch.by_blocks().map();
  return map;
}

wire::ElementwiseLaunch FinishLaunch(const wire::ReduceLaunch& launch) {
  wire::ElementwiseLaunch finish;
  AddAxes(launch.kept_extents(), &finish);
  wire::Operand output = launch.output();
  if (launch.kept_extents().empty()) {
    finish.add_extents(1);
    output.add_strides(0);
  }
  SetContiguous(finish.extents(), launch.by_blocks().accumulated_dtype(), finish.add_inputs());
  *finish.add_outputs() = std::move(output);
  *finish.mutable_scalars() = launch.finish_scalars();
  *finish.mutable_by_blocks() = launch.by_blocks().finish();
  return finish;
}

// Everything of a launch but where its operands lie.
struct Steps {
  std::shared_ptr<const BlockProgram> map;  // null: there is no element
  std::shared_ptr<const BlockProgram> finish;
  ReduceLoops loops;
  wire::ReduceLaunch plain;
  codegen::ReduceShape shape;
  int64_t num_elements = 0, num_results = 0;
  uint64_t value_bytes = 0, result_bytes = 0;
};

// `addresses`: of the inputs, then the output.
absl::Status Run(ThreadPool& pool, const Steps& steps, std::vector<uint64_t> addresses) {
  constexpr uint64_t kLineBytes = 64;
  const uint64_t results_at = (steps.value_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  ScratchMemory memory = AllocateScratch(results_at + steps.result_bytes + 1);
  if (!memory) return absl::ResourceExhaustedError("no memory for a reduction by blocks");
  const auto values = reinterpret_cast<uint64_t>(memory.get());
  const uint64_t results = values + results_at, output = addresses.back();
  addresses.back() = values;
  if (steps.map != nullptr) {
    absl::Status status = RunByBlocks(pool, *steps.map, steps.num_elements, addresses);
    if (!status.ok()) return status;
  }
  absl::Status status = RunReduce(pool, steps.loops, steps.shape, steps.plain, {values, results});
  if (!status.ok()) return status;
  return RunByBlocks(pool, *steps.finish, steps.num_results, {results, output});
}

}  // namespace

absl::StatusOr<Work> LowerReduceByBlocks(const LoweringContext& context,
                                         const wire::ReduceLaunch& launch,
                                         const ReduceOperands& operands) {
  if (!DTypeFromNumber(launch.by_blocks().mapped_dtype()) ||
      !DTypeFromNumber(launch.by_blocks().accumulated_dtype()))
    return Broken("a type");
  auto blocks = FindModule(context, launch.by_blocks().loops());
  if (!blocks.ok()) return blocks.status();
  auto module = FindModule(context, launch.module());
  if (!module.ok()) return module.status();
  auto steps = std::make_shared<Steps>();
  steps->loops = FindReduceLoops(**module);
  const bool columns = ops::KeptContiguous(launch);
  steps->plain = ops::PlainReduceLaunch(launch, columns);
  steps->shape = codegen::PlanReduceCpu(steps->plain);
  if (columns != ops::KeptContiguous(steps->plain) || !steps->loops.Fit(steps->shape))
    return Broken("its module");
  steps->num_elements = operands.num_elements;
  steps->num_results = operands.num_results;
  steps->value_bytes = static_cast<uint64_t>(
      operands.num_elements * ItemSize(static_cast<DType>(launch.by_blocks().mapped_dtype())));
  steps->result_bytes = static_cast<uint64_t>(
      operands.num_results * ItemSize(static_cast<DType>(launch.by_blocks().accumulated_dtype())));
  if (operands.num_elements > 0) {
    auto map = BlockProgram::Create(MapLaunch(launch, columns), **blocks);
    if (!map.ok()) return map.status();
    steps->map = *std::move(map);
  }
  auto finish = BlockProgram::Create(FinishLaunch(launch), **blocks);
  if (!finish.ok()) return finish.status();
  steps->finish = *std::move(finish);
  Work work;
  work.operands = operands.places;
  work.run = [pool = context.pool, module = *module, blocks = *blocks, steps,
              addresses = operands.addresses] { return Run(*pool, *steps, addresses); };
  return work;
}

}  // namespace stride::cpu
