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

wire::ScalarProgram InputAlone(int32_t dtype) {
  wire::ScalarProgram program;
  wire::Instruction* input = program.add_instructions();
  input->set_kind(wire::Instruction::KIND_INPUT);
  input->set_dtype(dtype);
  program.add_results(0);
  return program;
}

bool ReadsIndex(const wire::ScalarProgram& program) {
  return std::any_of(program.instructions().begin(), program.instructions().end(),
                     [](const wire::Instruction& instruction) {
                       return instruction.kind() == wire::Instruction::KIND_INDEX;
                     });
}

// Returns whether the program reads only this input.
bool FinishReads(const wire::ScalarProgram& finish, uint32_t index) {
  return std::all_of(finish.instructions().begin(), finish.instructions().end(),
                     [&](const wire::Instruction& instruction) {
                       return instruction.kind() != wire::Instruction::KIND_INPUT ||
                              instruction.index() == index;
                     });
}

// Returns the number of reduced axes for contiguous values. A run ends with the innermost axis, so
// that axis stays separate; the order of values depends on no other axis. Along columns no run
// ends, and all axes become one.
uint32_t PlainRank(uint32_t reduced_rank, Runs runs, bool columns) {
  return columns || runs == Runs::kNone ? 1 : std::clamp<uint32_t>(reduced_rank, 1, 2);
}

// Returns whether results depend on the order of combination. Extremes of floats do: of zeros with
// different signs, the first one remains.
bool OrderMatters(Code::Combine combine, int32_t accumulator) {
  const auto dtype = static_cast<DType>(accumulator);
  return !IsArg(combine) && (IsFloat(dtype) || IsComplex(dtype));
}

// Returns equal values for inputs that lead to equal code.
TakenAtOnce Canonical(const TakenAtOnce& taken, bool columns) {
  // A thread takes strided and 16-byte elements one by one, into as many accumulators as fit in 32
  // bytes, at most eight.
  const bool contiguous = taken.contiguous && taken.item_bytes < 16 && !columns;
  return {contiguous ? taken.item_bytes : std::max<int64_t>(taken.item_bytes, 4), contiguous};
}

// Returns a type of this size in bytes.
DType TypeOfBytes(int64_t bytes) {
  for (DType dtype : {DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64}) {
    if (ItemSize(dtype) == bytes) return dtype;
  }
  return DType::kComplex128;
}

// Returns nullopt if several inputs decide.
std::optional<TakenAtOnce> TakenOf(const Code& code) {
  const auto of = [](int32_t dtype, wire::Layout::Access access) {
    return TakenAtOnce{ItemSize(static_cast<DType>(dtype)),
                       access == wire::Layout::ACCESS_CONTIGUOUS};
  };
  if (code.has_computed()) return of(code.computed().dtype(), code.computed().access());
  if (code.input_dtypes_size() != 1) return std::nullopt;
  return of(code.input_dtypes(0), code.access(0));
}

int64_t Product(const Extents& extents, int count) {
  int64_t product = 1;
  for (int i = 0; i < count; ++i) product *= extents[i];
  return product;
}

// Returns the strides of axes in C order whose last axis has the stride `step`.
std::vector<int64_t> StridesOf(const Extents& extents, int64_t step) {
  std::vector<int64_t> strides(static_cast<size_t>(extents.size()));
  for (size_t i = strides.size(); i-- > 0;) {
    strides[i] = step;
    step *= extents[static_cast<int>(i)];
  }
  return strides;
}

void SetContiguous(const Extents& extents, int32_t dtype, wire::Operand* operand) {
  operand->set_dtype(dtype);
  for (int64_t stride : StridesOf(extents, ItemSize(static_cast<DType>(dtype))))
    operand->add_strides(stride);
}

// Copies the strides of the axes [begin, end) of `from`.
void AddStrides(const wire::Operand& from, int begin, int end, wire::Operand* operand) {
  for (int i = begin; i < end; ++i) operand->add_strides(from.strides(i));
}

}  // namespace

std::optional<wire::Code> PlainReduceCode(const Code& code, Runs runs) {
  const bool plain = code.combine() != Code::COMBINE_UNSPECIFIED &&
                     code.combine() != Code::COMBINE_PROGRAM && code.map().results_size() == 1 &&
                     !ReadsIndex(code.map()) && RunsByBlocks(code.map()) &&
                     RunsByBlocks(code.finish()) && !code.stores_accumulator() &&
                     !code.reads_accumulator() && FinishReads(code.finish(), 0);
  if (!plain) return std::nullopt;
  const bool columns = code.kept_contiguous();
  if (runs == Runs::kNone) {
    const std::optional<TakenAtOnce> taken = TakenOf(code);
    if (!taken.has_value()) return std::nullopt;
    return PlainReduceCode(code.combine(), code.accumulator_dtype(), columns, *taken);
  }
  const uint32_t rank = code.has_computed() ? code.computed().reduced_rank() : code.reduced_rank();
  return PlainReduceCode(code.combine(), code.accumulator_dtype(), columns,
                         PlainRank(rank, runs, columns));
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
  plain.set_index_32bit(true);  // the daemon limits the number of values
  return result;
}

wire::Code PlainReduceCode(Code::Combine combine, int32_t accumulator_dtype, bool columns,
                           const TakenAtOnce& taken) {
  wire::Code code = PlainReduceCode(combine, accumulator_dtype, columns, /*reduced_rank=*/1);
  if (!OrderMatters(combine, accumulator_dtype)) return code;
  const TakenAtOnce own = Canonical(taken, columns);
  Code::Computed& computed = *code.mutable_reduce()->mutable_computed();
  computed.set_dtype(static_cast<int32_t>(TypeOfBytes(own.item_bytes)));
  computed.set_access(own.contiguous ? wire::Layout::ACCESS_CONTIGUOUS
                                     : wire::Layout::ACCESS_STRIDED);
  computed.set_reduced_rank(1);
  computed.set_row_axes(1);
  computed.add_inner_access(wire::Layout::ACCESS_CONTIGUOUS);
  return code;
}

std::vector<TakenAtOnce> TakenBy(Code::Combine combine, int32_t accumulator_dtype, bool columns) {
  const TakenAtOnce own = {ItemSize(static_cast<DType>(accumulator_dtype)), true};
  if (!OrderMatters(combine, accumulator_dtype)) return {own};
  // An extreme has its elements' type, except that 16-bit floats are combined in float32.
  const bool is_extreme = combine == Code::COMBINE_MINIMUM || combine == Code::COMBINE_MAXIMUM;
  const bool is_float32 = accumulator_dtype == static_cast<int32_t>(DType::kFloat32);
  std::vector<TakenAtOnce> all;
  for (bool contiguous : {true, false}) {
    for (int64_t bytes : {1, 2, 4, 8, 16}) {
      if (is_extreme && bytes != own.item_bytes && !(is_float32 && bytes == 2)) continue;
      const TakenAtOnce taken = Canonical({bytes, contiguous}, columns);
      const bool known = std::any_of(all.begin(), all.end(), [&](const TakenAtOnce& other) {
        return other.item_bytes == taken.item_bytes && other.contiguous == taken.contiguous;
      });
      if (!known) all.push_back(taken);
    }
  }
  return all;
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

wire::ElementwiseLaunch MapLaunch(const wire::ReduceLaunch& launch, bool columns) {
  wire::ElementwiseLaunch map;
  map.mutable_extents()->MergeFrom(columns ? launch.reduced_extents() : launch.kept_extents());
  map.mutable_extents()->MergeFrom(columns ? launch.kept_extents() : launch.reduced_extents());
  const int kept = launch.kept_extents_size(), all = kept + launch.reduced_extents_size();
  if (all == 0) map.add_extents(1);  // an elementwise launch has at least one axis
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

wire::ReduceLaunch PlainReduceLaunch(const wire::ReduceLaunch& launch, Runs runs, bool columns) {
  const Extents& kept = DecidingLaunch(launch).kept_extents();
  const Extents& reduced = DecidingLaunch(launch).reduced_extents();
  const int64_t item = ItemSize(static_cast<DType>(launch.by_blocks().mapped_dtype()));
  const int64_t result = ItemSize(static_cast<DType>(launch.by_blocks().accumulated_dtype()));
  const int64_t kept_count = Product(kept, kept.size());
  wire::ReduceLaunch plain;
  plain.set_module(launch.module());
  const int axes = reduced.size();
  Extents* extents = plain.mutable_reduced_extents();
  if (PlainRank(static_cast<uint32_t>(axes), runs, columns) == 2) {
    extents->Add(Product(reduced, axes - 1));
    extents->Add(reduced[axes - 1]);
  } else {
    extents->Add(Product(reduced, axes));
  }
  wire::Operand* input = plain.add_inputs();
  input->set_dtype(launch.by_blocks().mapped_dtype());
  wire::Operand* output = plain.mutable_output();
  output->set_arena(1);
  output->set_dtype(launch.by_blocks().accumulated_dtype());
  if (columns) {  // merge the axes before the last one
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
  for (int64_t stride : StridesOf(*extents, columns ? kept_count * item : item))
    input->add_strides(stride);
  return plain;
}

wire::ElementwiseLaunch FinishLaunch(const wire::ReduceLaunch& launch) {
  wire::ElementwiseLaunch finish;
  *finish.mutable_extents() = launch.kept_extents();
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

}  // namespace stride::ops
