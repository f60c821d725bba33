#include "server/worker/codegen/reduce_by_blocks_cuda.h"

#include <algorithm>
#include <utility>

#include "server/ops/reduce_access.h"
#include "server/ops/reduce_by_blocks.h"
#include "server/store/dtype.h"
#include "server/worker/codegen/block_launch.h"
#include "server/worker/codegen/block_steps.h"
#include "server/worker/codegen/reduce_constants.h"

namespace stride::codegen {
namespace {

using Run = absl::FunctionRef<absl::Status(BlocksStep& step)>;

// A warp handles neighbouring columns.
constexpr int64_t kLeastColumns = kColumnThreads;

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }
uint64_t Align(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

template <typename Extents>
int64_t Product(const Extents& extents) {
  int64_t product = 1;
  for (int64_t extent : extents) product *= extent;
  return product;
}

int64_t BytesOf(int32_t dtype) { return ItemSize(static_cast<DType>(dtype)); }

// Whether the launch's output would be a copy of its input, in the same layout.
bool IsCopy(const wire::ElementwiseLaunch& launch) {
  const wire::ScalarProgram& program = launch.by_blocks();
  if (program.instructions_size() != 1 || program.results_size() != 1 ||
      program.instructions(0).kind() != wire::Instruction::KIND_INPUT || launch.inputs_size() != 1)
    return false;
  const wire::Operand &input = launch.inputs(0), &output = launch.outputs(0);
  if (input.dtype() != output.dtype()) return false;
  for (int i = 0; i < launch.extents_size(); ++i) {
    if (launch.extents(i) != 1 && input.strides(i) != output.strides(i)) return false;
  }
  return true;
}

absl::Status RunBlocks(const wire::ElementwiseLaunch& launch, absl::Span<const uint64_t> addresses,
                       ElementRange range, int num_multiprocessors, bool last, Run run) {
  auto steps = PlanBlockSteps(launch);
  if (!steps.ok()) return steps.status();
  auto packed = PackBlocks(*steps, addresses, range, num_multiprocessors);
  if (!packed.ok()) return packed.status();
  BlocksStep step{BlocksStep::Kind::kBlocks, packed->shape, std::move(packed->block), last};
  return run(step);
}

}  // namespace

ReduceByBlocksCuda::ReduceByBlocksCuda(wire::ReduceLaunch launch, int num_multiprocessors,
                                       uint64_t value_bytes)
    : launch_(std::move(launch)), num_multiprocessors_(num_multiprocessors) {
  columns_ = ops::KeptContiguous(launch_);
  shape_ = PlanReduceCuda(launch_, num_multiprocessors_);
  num_reduced_ = Product(launch_.reduced_extents());
  const auto most = static_cast<int64_t>(value_bytes);
  const int64_t num_results = Product(launch_.kept_extents());
  const int64_t result_item = BytesOf(launch_.by_blocks().accumulated_dtype());
  writes_output_ = IsCopy(ops::FinishLaunch(launch_));
  // A box of columns is not a contiguous run of the input.
  reads_input_ = IsCopy(ops::MapLaunch(launch_, columns_)) &&
                 (writes_output_ || num_results <= most / result_item);
  const int64_t item = reads_input_ ? 0 : BytesOf(launch_.by_blocks().mapped_dtype());
  const int64_t bytes = std::max(item * num_reduced_, writes_output_ ? 0 : result_item);
  ChooseBox(bytes == 0 ? num_results
                       : std::max(most / bytes, columns_ ? kLeastColumns : int64_t{1}));
  const int64_t results = Product(box_);
  // Several parts of rows are not a contiguous range of values, unless there is one row.
  const int64_t part = results * shape_.chunk * item;
  splits_at_once_ = results * num_reduced_ * item <= most
                        ? shape_.splits
                        : std::clamp<int64_t>(most / part, 1, shape_.splits);
  const int64_t reduced = std::min(splits_at_once_ * shape_.chunk, num_reduced_);
  partials_at_ = Align(static_cast<uint64_t>(results * reduced * item));
  results_at_ = partials_at_;
  if (shape_.splits > 1)
    results_at_ += Align(static_cast<uint64_t>(results * shape_.splits * kPartialBytes));
  result_bytes_ = writes_output_ ? 0 : static_cast<uint64_t>(results * result_item);
}

// Uses the innermost axes whole, a part of the next, and one index of each other: these results
// have consecutive indices.
void ReduceByBlocksCuda::ChooseBox(int64_t most_results) {
  box_.assign(launch_.kept_extents().begin(), launch_.kept_extents().end());
  for (size_t i = box_.size(); i-- > 0;) {
    const int64_t extent = box_[i];
    box_[i] = std::clamp<int64_t>(most_results, 1, extent);
    most_results = box_[i] < extent ? 1 : most_results / extent;
  }
}

ReduceByBlocksCuda::Box ReduceByBlocksCuda::BoxAt(const std::vector<int64_t>& begin,
                                                  absl::Span<const uint64_t> addresses) const {
  Box box{launch_, {addresses.begin(), addresses.end()}, 1};
  box.launch.clear_array();
  for (size_t i = 0; i < begin.size(); ++i) {
    const int axis = static_cast<int>(i);
    const int64_t extent = std::min(box_[i], launch_.kept_extents(axis) - begin[i]);
    box.launch.set_kept_extents(axis, extent);
    box.num_results *= extent;
    for (int k = 0; k < launch_.inputs_size(); ++k)
      box.addresses[static_cast<size_t>(k)] +=
          static_cast<uint64_t>(begin[i] * launch_.inputs(k).strides(axis));
    box.addresses.back() += static_cast<uint64_t>(begin[i] * launch_.output().strides(axis));
  }
  return box;
}

absl::Status ReduceByBlocksCuda::ForEachStep(absl::Span<const uint64_t> addresses, uint64_t scratch,
                                             uint64_t arrivals, Run run) const {
  const Places places{scratch, scratch + results_at_, scratch + partials_at_, arrivals};
  std::vector<int64_t> begin(box_.size(), 0);
  for (bool more = true; more;) {
    const Box box = BoxAt(begin, addresses);
    more = false;
    for (size_t i = box_.size(); !more && i-- > 0;) {  // the next one
      begin[i] += box_[i];
      more = begin[i] < launch_.kept_extents(static_cast<int>(i));
      if (!more) begin[i] = 0;
    }
    if (absl::Status status = RunBox(box, places, !more, run); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReduceByBlocksCuda::RunBox(const Box& box, const Places& places, bool last,
                                        Run run) const {
  for (int64_t split = 0; split < shape_.splits; split += splits_at_once_) {
    const int64_t num_splits = std::min(splits_at_once_, shape_.splits - split);
    const bool ends = last && writes_output_ && split + num_splits == shape_.splits;
    absl::Status status = RunParts(box, places, split, num_splits, ends, run);
    if (!status.ok()) return status;
  }
  if (writes_output_) return absl::OkStatus();
  return RunBlocks(ops::FinishLaunch(box.launch), {places.results, box.addresses.back()},
                   {0, box.num_results}, num_multiprocessors_, last, run);
}

// Computes the values of some parts of each result of the box, and combines them.
absl::Status ReduceByBlocksCuda::RunParts(const Box& box, const Places& places, int64_t first_split,
                                          int64_t num_splits, bool last, Run run) const {
  const bool all = num_splits == shape_.splits;
  const int64_t from = all ? 0 : first_split * shape_.chunk;
  const int64_t to = all ? num_reduced_ : std::min(from + num_splits * shape_.chunk, num_reduced_);
  const ElementRange range{from * box.num_results, to * box.num_results};
  uint64_t values = reads_input_ ? box.addresses.front() : places.values;
  if (!reads_input_) {
    // Address at which the value of the very first element would be.
    values -= static_cast<uint64_t>(range.begin * BytesOf(launch_.by_blocks().mapped_dtype()));
    std::vector<uint64_t> addresses = box.addresses;
    addresses.back() = values;
    if (range.end > range.begin) {
      absl::Status status = RunBlocks(ops::MapLaunch(box.launch, columns_), addresses, range,
                                      num_multiprocessors_, /*last=*/false, run);
      if (!status.ok()) return status;
    }
  }
  ReduceShape shape = shape_;
  shape.first_split = first_split;
  const uint32_t results_per_block = shape.first.block[columns_ ? 0 : 1];
  shape.first.grid[0] = static_cast<uint32_t>(DivideUp(box.num_results, results_per_block));
  shape.first.grid[1] = static_cast<uint32_t>(num_splits);
  const wire::ReduceLaunch plain = ops::PlainReduceLaunch(box.launch, ops::Runs::kNone, columns_);
  const uint64_t results = writes_output_ ? box.addresses.back() : places.results;
  BlocksStep step{BlocksStep::Kind::kReduce, shape.first,
                  PackReduce(plain, shape, {values, results}, places.partials, places.arrivals),
                  last};
  return run(step);
}

}  // namespace stride::codegen
