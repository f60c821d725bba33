#include "server/ops/pieces.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "server/ops/collapse.h"
#include "server/ops/program_builder.h"
#include "server/ops/reduce_access.h"
#include "server/store/dtype.h"

namespace stride::ops {
namespace {

// Preferred run lengths in bytes, in order of preference: many short runs cost more than their
// bytes.
constexpr int64_t kLongRuns[] = {4096, 64, 1};
constexpr int64_t kFewRuns = 1024;
// Unused bytes per used byte that a piece may copy between elements, at most.
constexpr int64_t kMaxWaste = 2;
constexpr int64_t kMaxPieces = int64_t{1} << 20;

using Extents = absl::Span<const int64_t>;

int64_t Product(Extents extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

absl::Status NotCut(absl::string_view why) { return absl::UnimplementedError(why); }

int64_t ItemOf(const wire::Operand& operand) {
  return ItemSize(static_cast<DType>(operand.dtype()));
}

bool HasIndex(const wire::ScalarProgram& program) {
  return std::any_of(program.instructions().begin(), program.instructions().end(),
                     [](const auto& i) { return i.kind() == wire::Instruction::KIND_INDEX; });
}

// Returns whether a partial result is a record of moments (device/moments.h) instead of one number.
bool HasRecords(const wire::ReduceCode& code) {
  return code.combine() == wire::ReduceCode::COMBINE_MOMENTS;
}
int64_t PartialItem(const wire::ReduceCode& code) {
  return HasRecords(code) ? kRecordBytes : ItemSize(static_cast<DType>(code.accumulator_dtype()));
}
// Returns the largest type for a record, whose alignment is sufficient.
int32_t PartialType(const wire::ReduceCode& code) {
  return HasRecords(code) ? static_cast<int32_t>(DType::kComplex128) : code.accumulator_dtype();
}

wire::ScalarProgram Identity(DType dtype) {
  ProgramBuilder builder;
  return builder.Finish({builder.Input(0, dtype)});
}

// Adds the launch constant `scalar` to each index of the program.
wire::ScalarProgram WithIndexFrom(const wire::ScalarProgram& program, uint32_t scalar) {
  wire::ScalarProgram moved;
  std::vector<uint32_t> now;  // new instruction ids by old id
  for (const wire::Instruction& old : program.instructions()) {
    wire::Instruction* copy = moved.add_instructions();
    *copy = old;
    for (uint32_t& argument : *copy->mutable_arguments()) argument = now[argument];
    auto id = static_cast<uint32_t>(moved.instructions_size() - 1);
    if (old.kind() == wire::Instruction::KIND_INDEX) {
      wire::Instruction* base = moved.add_instructions();
      base->set_kind(wire::Instruction::KIND_SCALAR);
      base->set_dtype(static_cast<int>(DType::kInt64));
      base->set_index(scalar);
      wire::Instruction* sum = moved.add_instructions();
      sum->set_kind(wire::Instruction::KIND_OP);
      sum->set_dtype(static_cast<int>(DType::kInt64));
      sum->set_op("add");
      sum->add_arguments(id);
      sum->add_arguments(id + 1);
      id += 2;
    }
    now.push_back(id);
  }
  for (uint32_t result : program.results()) moved.add_results(now[result]);
  return moved;
}

wire::ScalarValue Int64Scalar(int64_t value) {
  wire::ScalarValue scalar;
  scalar.set_dtype(static_cast<int>(DType::kInt64));
  scalar.set_value(&value, sizeof(value));
  return scalar;
}

wire::Operand OperandAt(size_t slot, int64_t offset, int dtype, const std::vector<int64_t>& s) {
  wire::Operand operand;
  operand.set_arena(slot);
  operand.set_offset(static_cast<uint64_t>(offset));
  operand.set_dtype(dtype);
  operand.mutable_strides()->Assign(s.begin(), s.end());
  return operand;
}

}  // namespace

int64_t IndexBox::num_runs() const { return Product(extents); }

// One operand's part of a piece.
struct Pieces::Part {
  IndexBox region;
  int64_t offset = 0;            // first element, in the piece's buffer
  std::vector<int64_t> strides;  // in the piece's buffer
  bool has_gaps = false;
};

absl::StatusOr<Pieces> Pieces::Cut(const Plan& plan, int output_slot, int64_t max_bytes) {
  Pieces pieces;
  if (absl::Status status = pieces.Read(plan, output_slot); !status.ok()) return status;
  if (absl::Status status = pieces.Choose(max_bytes); !status.ok()) return status;
  return pieces;
}

absl::Status Pieces::Read(const Plan& plan, int output_slot) {
  if (plan.code.has_value()) code_ = *plan.code;
  task_ = plan.task;
  bytes_ = plan.bytes;
  flops_ = plan.flops;
  auto read = [](const wire::Operand& operand) {
    return Operand{.slot = static_cast<int>(operand.arena()),
                   .item = ItemOf(operand),
                   .offset = static_cast<int64_t>(operand.offset()),
                   .strides = {operand.strides().begin(), operand.strides().end()}};
  };
  auto bytes = [](uint64_t slot, uint64_t offset) {
    return Operand{.slot = static_cast<int>(slot),
                   .item = 1,
                   .offset = static_cast<int64_t>(offset),
                   .strides = {1}};
  };
  switch (task_.kind_case()) {
    case wire::Task::kElementwise: {
      const auto& launch = task_.elementwise();
      if (launch.outputs_size() != 1) return NotCut("an operation with several results");
      extents_.assign(launch.extents().begin(), launch.extents().end());
      for (const auto& input : launch.inputs()) inputs_.push_back(read(input));
      for (const Operand& input : inputs_) {
        if (input.slot >= output_slot)
          return NotCut("an operation that keeps a part of its output");
      }
      output_ = read(launch.outputs(0));
      uses_index_ = HasIndex(code_.elementwise().program());
      break;
    }
    case wire::Task::kReduce: {
      kind_ = Kind::kReduce;
      const auto& launch = task_.reduce();
      extents_.assign(launch.kept_extents().begin(), launch.kept_extents().end());
      num_kept_ = extents_.size();
      extents_.insert(extents_.end(), launch.reduced_extents().begin(),
                      launch.reduced_extents().end());
      for (const auto& input : launch.inputs()) inputs_.push_back(read(input));
      output_ = read(launch.output());
      break;
    }
    case wire::Task::kCopyBytes: {
      kind_ = Kind::kCopy;
      const auto& copy = task_.copy_bytes();
      extents_ = {static_cast<int64_t>(copy.size())};
      inputs_ = {bytes(copy.from_arena(), copy.from_offset())};
      output_ = bytes(copy.to_arena(), copy.to_offset());
      break;
    }
    case wire::Task::kZeroFill:
      kind_ = Kind::kFill;
      extents_ = {static_cast<int64_t>(task_.zero_fill().size())};
      output_ = bytes(task_.zero_fill().arena(), task_.zero_fill().offset());
      break;
    case wire::Task::kMatmul:
      return NotCut("a matrix product is not computed in pieces yet");
    case wire::Task::kLinalg:
      return NotCut("decompositions and linear systems are not computed in pieces yet");
    case wire::Task::kFft:
      return NotCut("Fourier transforms are not computed in pieces yet");
    case wire::Task::kKernel:
      return NotCut("a kernel of a client cannot be computed in pieces");
    case wire::Task::kRoutine:
      return NotCut("scans, sorts and operations by indices are not computed in pieces yet");
    case wire::Task::KIND_NOT_SET:
      return NotCut("an array cannot be moved to a device that is smaller");
  }
  if (kind_ != Kind::kReduce) num_kept_ = extents_.size();
  if (output_.slot != output_slot) return absl::InternalError("Pieces: unexpected output slot");
  return absl::OkStatus();
}

Pieces::Part Pieces::PartOf(const Operand& operand, Extents begin, Extents count) {
  Part part;
  part.strides.assign(operand.strides.size(), 0);
  part.region.offset = operand.offset;
  std::vector<size_t> axes;
  bool empty = false;
  for (size_t i = 0; i < operand.strides.size(); ++i) {
    part.region.offset += begin[i] * operand.strides[i];
    empty |= count[i] == 0;
    if (count[i] <= 1 || operand.strides[i] == 0) continue;
    if (operand.strides[i] < 0) part.region.offset += (count[i] - 1) * operand.strides[i];
    axes.push_back(i);
  }
  if (empty) {
    part.region = {};
    return part;
  }
  std::stable_sort(axes.begin(), axes.end(), [&](size_t a, size_t b) {
    return std::abs(operand.strides[a]) < std::abs(operand.strides[b]);
  });
  int64_t width = operand.item, used = operand.item;
  auto place = [&](size_t axis, int64_t step) {
    bool back = operand.strides[axis] < 0;
    part.strides[axis] = back ? -step : step;
    if (back) part.offset += (count[axis] - 1) * step;
  };
  size_t next = 0;
  for (; next < axes.size(); ++next) {
    size_t axis = axes[next];
    int64_t step = std::abs(operand.strides[axis]);
    int64_t wider = (count[axis] - 1) * step + width;
    if (wider > kMaxWaste * count[axis] * used) break;
    part.has_gaps |= step != width;
    width = wider;
    used *= count[axis];
    place(axis, step);
  }
  part.region.run_bytes = width;
  for (; next < axes.size(); ++next) {
    size_t axis = axes[next];
    part.region.extents.insert(part.region.extents.begin(), count[axis]);
    part.region.strides.insert(part.region.strides.begin(), std::abs(operand.strides[axis]));
    place(axis, width);
    width *= count[axis];
  }
  return part;
}

bool Pieces::Fits(Extents chunk, int64_t max_bytes) const {
  std::vector<int64_t> begin(chunk.size(), 0);
  int64_t bytes = PartOf(output_, begin, chunk).region.num_bytes();
  int64_t partials = 1;
  for (size_t i = num_kept_; i < chunk.size(); ++i)
    partials *= chunk[i] == 0 ? 1 : (extents_[i] + chunk[i] - 1) / chunk[i];
  if (partials > 1) {
    int64_t one = Product(chunk.subspan(0, num_kept_)) * PartialItem(code_.reduce());
    if (one > max_bytes / partials || partials * one + bytes > max_bytes) return false;
    bytes = one;
  }
  for (const Operand& input : inputs_) bytes += PartOf(input, begin, chunk).region.num_bytes();
  return bytes <= max_bytes;
}

bool Pieces::HasLongRuns(Extents chunk, int64_t least) const {
  std::vector<int64_t> begin(chunk.size(), 0);
  auto good = [&](const Operand& operand) {
    IndexBox region = PartOf(operand, begin, chunk).region;
    return region.run_bytes >= least || region.num_runs() <= kFewRuns;
  };
  return good(output_) && std::all_of(inputs_.begin(), inputs_.end(), good);
}

// Cuts along `order` into as few pieces as fit. A later axis is cut only once each earlier one has
// single indices.
bool Pieces::ChunkAlong(absl::Span<const size_t> order, int64_t max_bytes, int64_t least_run) {
  chunk_ = extents_;
  for (size_t axis : order) {
    if (Fits(chunk_, max_bytes)) break;
    int64_t low = 1, high = extents_[axis];
    while (low < high) {
      chunk_[axis] = low + (high - low + 1) / 2;
      if (Fits(chunk_, max_bytes)) {
        low = chunk_[axis];
      } else {
        high = chunk_[axis] - 1;
      }
    }
    // Balance the pieces without changing their number.
    int64_t count = (extents_[axis] + low - 1) / low;
    chunk_[axis] = (extents_[axis] + count - 1) / count;
  }
  return Fits(chunk_, max_bytes) && HasLongRuns(chunk_, least_run) && size() <= kMaxPieces;
}

absl::Status Pieces::Choose(int64_t max_bytes) {
  chunk_ = extents_;
  if (Product(extents_) == 0) return absl::OkStatus();
  // Partial results record neither an element's index nor the number of selected elements.
  bool only_kept = kind_ == Kind::kReduce &&
                   (IsArg(code_.reduce().combine()) || code_.reduce().map().results_size() > 1);
  size_t rank = extents_.size(), usable = only_kept ? num_kept_ : rank;
  // An index requires the elements in order.
  size_t firsts = uses_index_ ? 1 : std::max<size_t>(usable, 1);
  for (size_t i = 0; i < std::size(kLongRuns) * firsts; ++i) {
    // Try kept axes before reduced ones, and the other way round.
    size_t first = i % firsts;
    std::vector<size_t> order;
    if (first < usable) order.push_back(first);
    bool reduced_first = first >= num_kept_;
    for (bool reduced : {reduced_first, !reduced_first}) {
      for (size_t axis = 0; axis < usable; ++axis) {
        if (axis != first && (axis >= num_kept_) == reduced) order.push_back(axis);
      }
    }
    if (ChunkAlong(order, max_bytes, kLongRuns[i / firsts])) return absl::OkStatus();
  }
  if (only_kept)
    return NotCut(
        "reductions to an index, or of the elements that take part, are not computed in pieces "
        "along their axis yet");
  return NotCut("no axis cuts all of its arrays into parts that are small enough");
}

int64_t Pieces::NumChunks(size_t axis) const {
  return chunk_[axis] == 0 ? 1 : (extents_[axis] + chunk_[axis] - 1) / chunk_[axis];
}

int64_t Pieces::NumAlong(size_t from, size_t to) const {
  int64_t count = 1;
  for (size_t axis = from; axis < to; ++axis) count *= NumChunks(axis);
  return count;
}

int64_t Pieces::size() const {
  Extents kept = Extents(extents_).subspan(0, num_kept_);
  if (std::find(kept.begin(), kept.end(), 0) != kept.end()) return 0;
  int64_t partials = NumAlong(num_kept_, extents_.size());
  return NumAlong(0, num_kept_) * (partials > 1 ? partials + 1 : 1);
}

Piece Pieces::At(int64_t index) const {
  int64_t partials = NumAlong(num_kept_, extents_.size());
  int64_t group = partials > 1 ? partials + 1 : 1;
  int64_t kept = index / group, reduced = index % group;
  bool combines = partials > 1 && reduced == partials;
  if (combines) reduced = 0;
  std::vector<int64_t> begin(extents_.size()), count(extents_.size());
  for (size_t axis = extents_.size(); axis-- > 0;) {
    int64_t& number = axis < num_kept_ ? kept : reduced;
    begin[axis] = number % NumChunks(axis) * chunk_[axis];
    number /= NumChunks(axis);
    count[axis] = std::min(chunk_[axis], extents_[axis] - begin[axis]);
  }
  if (combines) return Combine(begin, count);

  Piece piece;
  bool partial = partials > 1;
  piece.role = partial ? Piece::Role::kPartial : Piece::Role::kResult;
  std::vector<Part> inputs;
  for (const Operand& input : inputs_) {
    inputs.push_back(PartOf(input, begin, count));
    piece.sources.push_back({input.slot, inputs.back().region});
  }
  Part output = PartOf(output_, begin, count);
  if (partial) {
    const int64_t item = PartialItem(code_.reduce());
    Operand dense{.item = item, .strides = std::vector<int64_t>(num_kept_)};
    int64_t step = item;
    for (size_t axis = num_kept_; axis-- > 0; step *= count[axis]) dense.strides[axis] = step;
    output = PartOf(dense, std::vector<int64_t>(num_kept_, 0), count);
    piece.output_bytes = step;
  } else {
    piece.output = output.region;
    piece.output_bytes = output.region.num_bytes();
    piece.keeps_rest = output.has_gaps;
  }
  Plan& plan = piece.plan;
  plan.outputs.resize(1);
  double share = static_cast<double>(Product(count)) /
                 static_cast<double>(std::max<int64_t>(1, Product(extents_)));
  plan.bytes = bytes_ * share;
  plan.flops = flops_ * share;
  plan.task.set_label(task_.label());
  switch (kind_) {
    case Kind::kLoop:
      FillLoop(begin, count, inputs, output, &plan);
      break;
    case Kind::kReduce:
      FillReduce(count, inputs, output, partial, &plan);
      break;
    case Kind::kCopy: {
      auto* copy = plan.task.mutable_copy_bytes();
      copy->set_to_arena(1);
      copy->set_size(static_cast<uint64_t>(count[0]));
      break;
    }
    case Kind::kFill:
      plan.task.mutable_zero_fill()->set_size(static_cast<uint64_t>(count[0]));
      break;
  }
  return piece;
}

void Pieces::FillLoop(Extents begin, Extents count, const std::vector<Part>& inputs,
                      const Part& output, Plan* plan) const {
  const auto& whole = task_.elementwise();
  Loop loop{{count.begin(), count.end()}, {}};
  for (const Part& input : inputs) loop.strides.push_back(input.strides);
  loop.strides.push_back(output.strides);
  loop = Collapse(std::move(loop), uses_index_ ? AxisOrder::kKeep : AxisOrder::kLocality);
  auto* code = plan->code.emplace().mutable_elementwise();
  auto* launch = plan->task.mutable_elementwise();
  *code = code_.elementwise();
  code->clear_layout();
  *launch->mutable_scalars() = whole.scalars();
  if (uses_index_) {
    *code->mutable_program() =
        WithIndexFrom(code_.elementwise().program(), static_cast<uint32_t>(launch->scalars_size()));
    int64_t first = 0;
    for (size_t axis = 0; axis < begin.size(); ++axis) first = first * extents_[axis] + begin[axis];
    *launch->add_scalars() = Int64Scalar(first);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    code->mutable_layout()->add_access(AccessOf(loop, i, inputs_[i].item));
    *launch->add_inputs() =
        OperandAt(i, inputs[i].offset, whole.inputs(static_cast<int>(i)).dtype(), loop.strides[i]);
  }
  code->mutable_layout()->add_access(AccessOf(loop, inputs.size(), output_.item));
  code->mutable_layout()->set_rank(static_cast<uint32_t>(loop.extents.size()));
  code->set_index_32bit(Fits32Bits(loop));
  launch->mutable_extents()->Assign(loop.extents.begin(), loop.extents.end());
  *launch->add_outputs() =
      OperandAt(inputs.size(), output.offset, whole.outputs(0).dtype(), loop.strides.back());
}

namespace {

// Derives the code's layout from the launch.
void SetReduceLayout(const wire::ReduceLaunch& launch, int64_t num_elements,
                     wire::ReduceCode* code) {
  code->set_kept_rank(static_cast<uint32_t>(launch.kept_extents_size()));
  code->set_reduced_rank(static_cast<uint32_t>(launch.reduced_extents_size()));
  code->clear_access();
  for (int i = 0; i < launch.inputs_size(); ++i) code->add_access(ReducedAccess(launch, i));
  code->set_kept_contiguous(KeptContiguous(launch));
  code->set_index_32bit(Fits32Bits(Loop{{num_elements}, {}}) && ReachFits32Bits(launch));
}

void SetReduceExtents(const Loop& kept, const Loop& reduced, wire::ReduceLaunch* launch) {
  launch->mutable_kept_extents()->Assign(kept.extents.begin(), kept.extents.end());
  launch->mutable_reduced_extents()->Assign(reduced.extents.begin(), reduced.extents.end());
}

// `kept.strides` and `reduced.strides` list the inputs, then the output.
void AddReduceInput(const Loop& kept, const Loop& reduced, int64_t offset, int dtype,
                    wire::ReduceLaunch* launch) {
  const auto i = static_cast<size_t>(launch->inputs_size());
  std::vector<int64_t> strides = kept.strides[i];
  strides.insert(strides.end(), reduced.strides[i].begin(), reduced.strides[i].end());
  *launch->add_inputs() = OperandAt(i, offset, dtype, strides);
}

void SetReduceOutput(const Loop& kept, int64_t offset, int dtype, wire::ReduceLaunch* launch) {
  *launch->mutable_output() =
      OperandAt(static_cast<size_t>(launch->inputs_size()), offset, dtype, kept.strides.back());
}

}  // namespace

void Pieces::FillReduce(Extents count, const std::vector<Part>& inputs, const Part& output,
                        bool partial, Plan* plan) const {
  const auto& whole = task_.reduce();
  Loop kept{{count.begin(), count.begin() + num_kept_}, {}};
  Loop reduced{{count.begin() + num_kept_, count.end()}, {}};
  for (const Part& input : inputs) {
    const auto middle = input.strides.begin() + static_cast<int64_t>(num_kept_);
    kept.strides.emplace_back(input.strides.begin(), middle);
    reduced.strides.emplace_back(middle, input.strides.end());
  }
  kept.strides.push_back(output.strides);
  // The planner has already ordered the axes; pieces only shorten some.
  kept = Collapse(std::move(kept), AxisOrder::kKeep, false);
  reduced = Collapse(std::move(reduced), AxisOrder::kKeep, false);
  auto* code = plan->code.emplace().mutable_reduce();
  auto* launch = plan->task.mutable_reduce();
  *code = code_.reduce();
  code->clear_computed();  // partial results have a different order
  *launch->mutable_map_scalars() = whole.map_scalars();
  if (partial) {
    const int32_t partial_type = PartialType(*code);
    *code->mutable_finish() =
        Identity(FinishedType(code->combine(), static_cast<DType>(code->accumulator_dtype())));
    code->set_output_dtype(partial_type);
    code->set_stores_accumulator(HasRecords(*code));
  } else {
    *launch->mutable_finish_scalars() = whole.finish_scalars();
  }
  SetReduceExtents(kept, reduced, launch);
  for (size_t i = 0; i < inputs.size(); ++i) {
    AddReduceInput(kept, reduced, inputs[i].offset, whole.inputs(static_cast<int>(i)).dtype(),
                   launch);
  }
  SetReduceOutput(kept, output.offset, code->output_dtype(), launch);
  SetReduceLayout(*launch, Product(count), code);
}

Piece Pieces::Combine(Extents begin, Extents count) const {
  Piece piece;
  piece.role = Piece::Role::kCombine;
  Part output = PartOf(output_, begin, count);
  piece.output = output.region;
  piece.output_bytes = output.region.num_bytes();
  piece.keeps_rest = output.has_gaps;
  int64_t partials = NumAlong(num_kept_, extents_.size());
  const int64_t item = PartialItem(code_.reduce());
  Loop kept{{count.begin(), count.begin() + num_kept_},
            {std::vector<int64_t>(num_kept_), output.strides}};
  int64_t step = item;
  for (size_t axis = num_kept_; axis-- > 0; step *= count[axis]) kept.strides[0][axis] = step;
  kept = Collapse(std::move(kept), AxisOrder::kKeep, false);
  Loop reduced{{partials}, {{step}}};

  Plan& plan = piece.plan;
  plan.outputs.resize(1);
  plan.task.set_label(task_.label());
  auto* code = plan.code.emplace().mutable_reduce();
  auto* launch = plan.task.mutable_reduce();
  *code = code_.reduce();
  const int32_t partial_type = PartialType(*code);
  *code->mutable_map() = Identity(static_cast<DType>(partial_type));
  code->clear_input_dtypes();
  code->add_input_dtypes(partial_type);
  code->set_reads_accumulator(HasRecords(*code));
  *launch->mutable_finish_scalars() = task_.reduce().finish_scalars();
  code->clear_computed();
  SetReduceExtents(kept, reduced, launch);
  AddReduceInput(kept, reduced, 0, partial_type, launch);
  SetReduceOutput(kept, output.offset, code->output_dtype(), launch);
  int64_t elements = partials * (step / item);
  SetReduceLayout(*launch, elements, code);
  plan.bytes = static_cast<double>(partials * step + piece.output_bytes);
  plan.flops = static_cast<double>(elements);
  return piece;
}

std::optional<Plan> PartOfCreation(const Plan& plan, int64_t first, const ArrayInfo& output) {
  if (plan.outputs.size() != 1 || !plan.outputs[0].IsContiguous() || plan.is_view)
    return std::nullopt;
  const int64_t whole = std::max<int64_t>(1, plan.outputs[0].num_elements());
  const int64_t count = output.num_elements();
  Plan part = plan;
  part.outputs = {output};
  const double share = static_cast<double>(count) / static_cast<double>(whole);
  part.bytes *= share;
  part.flops *= share;
  if (plan.task.has_zero_fill()) {
    part.task.mutable_zero_fill()->set_size(static_cast<uint64_t>(output.size_bytes()));
    return part;
  }
  if (!plan.task.has_elementwise() || plan.task.elementwise().inputs_size() > 0)
    return std::nullopt;
  wire::ElementwiseLaunch* launch = part.task.mutable_elementwise();
  wire::ElementwiseCode* code = part.code->mutable_elementwise();
  Loop loop{{count}, {{ItemSize(output.dtype)}}};
  *code->mutable_program() =
      WithIndexFrom(code->program(), static_cast<uint32_t>(launch->scalars_size()));
  *launch->add_scalars() = Int64Scalar(first);
  code->clear_layout();
  code->mutable_layout()->add_access(AccessOf(loop, 0, ItemSize(output.dtype)));
  code->mutable_layout()->set_rank(1);
  code->set_index_32bit(Fits32Bits(loop));
  launch->mutable_extents()->Assign(loop.extents.begin(), loop.extents.end());
  launch->mutable_outputs(0)->mutable_strides()->Assign(loop.strides[0].begin(),
                                                        loop.strides[0].end());
  return part;
}

}  // namespace stride::ops
