#include "server/ops/reduce_by_blocks.h"

#include <algorithm>
#include <vector>

#include "server/ops/block_loops.h"
#include "server/ops/reduce_access.h"
#include "server/store/dtype.h"

namespace stride::ops {
namespace {

using Code = wire::ReduceCode;
using Extents = google::protobuf::RepeatedField<int64_t>;

int32_t AccumulatedType(Code::Combine combine, int32_t accumulator) {
  return static_cast<int32_t>(FinishedType(combine, static_cast<DType>(accumulator)));
}

wire::Program InputAlone(int32_t dtype) {
  wire::Program program;
  wire::Instruction* input = program.add_instructions();
  input->set_kind(wire::Instruction::KIND_INPUT);
  input->set_dtype(dtype);
  program.add_results(0);
  return program;
}

bool ReadsIndex(const wire::Program& program) {
  return std::any_of(program.instructions().begin(), program.instructions().end(),
                     [](const wire::Instruction& instruction) {
                       return instruction.kind() == wire::Instruction::KIND_INDEX;
                     });
}

// Whether the program reads no input but this one.
bool FinishReads(const wire::Program& finish, uint32_t index) {
  return std::all_of(finish.instructions().begin(), finish.instructions().end(),
                     [&](const wire::Instruction& instruction) {
                       return instruction.kind() != wire::Instruction::KIND_INPUT ||
                              instruction.index() == index;
                     });
}

// The axes of a reduction of values that lie one after another. A run ends with the innermost axis,
// so that one is kept apart; the order of values depends on no other axis. Along columns no run
// ends, and all axes are one.
uint32_t PlainRank(uint32_t reduced_rank, bool columns) {
  return columns ? 1 : std::clamp<uint32_t>(reduced_rank, 1, 2);
}

int64_t Product(const Extents& extents, int count) {
  int64_t product = 1;
  for (int i = 0; i < count; ++i) product *= extents[i];
  return product;
}

// The strides of axes in C order, the last of which has this step.
std::vector<int64_t> StridesOf(const Extents& extents, int64_t step) {
  std::vector<int64_t> strides(static_cast<size_t>(extents.size()));
  for (size_t i = strides.size(); i-- > 0;) {
    strides[i] = step;
    step *= extents[static_cast<int>(i)];
  }
  return strides;
}

}  // namespace

std::optional<wire::Code> PlainReduceCode(const Code& code) {
  const bool plain = code.combine() != Code::COMBINE_PROGRAM && code.map().results_size() == 1 &&
                     !ReadsIndex(code.map()) && RunsByBlocks(code.map()) &&
                     RunsByBlocks(code.finish()) && !code.stores_accumulator() &&
                     !code.reads_accumulator() && FinishReads(code.finish(), 0);
  if (!plain) return std::nullopt;
  const bool columns = code.kept_contiguous();
  const uint32_t rank = code.has_computed() ? code.computed().reduced_rank() : code.reduced_rank();
  return PlainReduceCode(code.combine(), code.accumulator_dtype(), columns,
                         PlainRank(rank, columns));
}

wire::Code PlainReduceCode(Code::Combine combine, int32_t accumulator_dtype, bool columns,
                           uint32_t reduced_rank) {
  wire::Code result;
  Code& plain = *result.mutable_reduce();
  plain.add_input_dtypes(accumulator_dtype);
  *plain.mutable_map() = InputAlone(accumulator_dtype);
  plain.set_combine(combine);
  plain.set_accumulator_dtype(accumulator_dtype);
  plain.set_output_dtype(AccumulatedType(combine, accumulator_dtype));
  *plain.mutable_finish() = InputAlone(plain.output_dtype());
  plain.set_kept_rank(columns ? 2 : 1);
  plain.set_reduced_rank(reduced_rank);
  const bool one_run = !columns && reduced_rank <= 1;
  plain.add_access(one_run ? wire::Layout::ACCESS_CONTIGUOUS : wire::Layout::ACCESS_STRIDED);
  plain.set_kept_contiguous(columns);
  plain.set_index_32bit(true);  // a CPU device makes nothing of it
  return result;
}

wire::ReduceLaunch::ByBlocks ReduceByBlocks(const Code& code, uint64_t loops) {
  wire::ReduceLaunch::ByBlocks by_blocks;
  by_blocks.set_loops(loops);
  *by_blocks.mutable_map() = code.map();
  *by_blocks.mutable_finish() = code.finish();
  by_blocks.set_mapped_dtype(code.accumulator_dtype());
  by_blocks.set_accumulated_dtype(AccumulatedType(code.combine(), code.accumulator_dtype()));
  return by_blocks;
}

wire::ReduceLaunch PlainReduceLaunch(const wire::ReduceLaunch& launch, bool columns) {
  const Extents& kept = DecidingLaunch(launch).kept_extents();
  const Extents& reduced = DecidingLaunch(launch).reduced_extents();
  const int64_t item = ItemSize(static_cast<DType>(launch.by_blocks().mapped_dtype()));
  const int64_t result = ItemSize(static_cast<DType>(launch.by_blocks().accumulated_dtype()));
  const int64_t kept_count = Product(kept, kept.size());
  wire::ReduceLaunch plain;
  plain.set_module(launch.module());
  const int axes = reduced.size();
  Extents* runs = plain.mutable_reduced_extents();
  if (PlainRank(static_cast<uint32_t>(axes), columns) == 2) {
    runs->Add(Product(reduced, axes - 1));
    runs->Add(reduced[axes - 1]);
  } else {
    runs->Add(Product(reduced, axes));
  }
  wire::Operand* input = plain.add_inputs();
  input->set_dtype(launch.by_blocks().mapped_dtype());
  wire::Operand* output = plain.mutable_output();
  output->set_arena(1);
  output->set_dtype(launch.by_blocks().accumulated_dtype());
  if (columns) {  // the axes before the last one as one axis
    const int last = kept.size() - 1;
    const int64_t width = last < 0 ? 1 : kept[last];
    plain.add_kept_extents(Product(kept, std::max(last, 0)));
    plain.add_kept_extents(width);
    input->add_strides(width * item);
    input->add_strides(item);
    output->add_strides(width * result);
    output->add_strides(result);
  } else {
    plain.add_kept_extents(kept_count);
    input->add_strides(Product(reduced, axes) * item);
    output->add_strides(result);
  }
  for (int64_t stride : StridesOf(*runs, columns ? kept_count * item : item))
    input->add_strides(stride);
  return plain;
}

}  // namespace stride::ops
