// Whole operations of clients: planned or refused, never more. Inputs are derived from the handles.

#include <cstdint>
#include <string>
#include <vector>

#include "server/ops/plan.h"
#include "tests/fuzz/driver/proto_mutator.h"
#include "tests/fuzz/driver/require.h"

namespace {

using stride::fuzz::Require;
namespace ops = stride::ops;

// Most arrays are small; some have extents whose product overflows.
std::vector<int64_t> ShapeOf(uint64_t seed) {
  constexpr int64_t kExtents[] = {3, 1, 4, 0, 2, 7, 1 << 20, int64_t{1} << 31};
  std::vector<int64_t> shape;
  for (uint64_t rank = seed % 5; rank-- > 0;) {
    seed = seed / 5 * 31 + 7;
    shape.push_back(kExtents[seed % 8]);
  }
  return shape;
}

ops::Input InputOf(const stride::v1::Operand& operand) {
  uint64_t seed = 0;
  if (operand.has_scalar()) return std::nullopt;
  if (operand.has_handle()) seed = operand.handle();
  if (operand.has_name()) seed = operand.name().size();
  if (operand.has_inline_array()) seed = operand.inline_array().data().size();
  auto dtype = static_cast<stride::DType>(1 + seed % stride::kNumDTypes);
  stride::ArrayInfo array = stride::Contiguous(dtype, ShapeOf(seed / stride::kNumDTypes));
  // The daemon's limit (--max-array-bytes) fits the address space.
  __int128 bytes = stride::ItemSize(dtype);
  for (int64_t extent : array.shape) bytes *= extent;
  if (bytes > int64_t{1} << 44) array = stride::Contiguous(dtype, {5});
  return array;
}

void CheckOutput(const stride::ArrayInfo& output) {
  Require(output.shape.size() <= 32, "too many axes");
  Require(output.shape.size() == output.strides.size(), "strides that do not fit the shape");
  for (int64_t extent : output.shape) Require(extent >= 0, "a negative extent");
  Require(output.num_elements() >= 0 && output.size_bytes() >= 0, "a size that overflows");
}

void Plan(const stride::v1::Operation& operation, std::vector<ops::Input> inputs, int depth) {
  std::vector<ops::Input> existing;
  for (const auto* output : ops::OutputsOf(operation)) {
    existing.emplace_back();
    if (output->existing()) {
      stride::v1::Operand like;
      like.set_handle(output->handle());
      existing.back() = InputOf(like);
    }
  }
  auto plan = ops::PlanOperation(operation, inputs, existing);
  if (!plan.ok()) {
    Require(plan.status().code() != absl::StatusCode::kInternal, "an error of ours");
    return;
  }
  for (const stride::ArrayInfo& output : plan->outputs) CheckOutput(output);
  bool converts = false;
  for (size_t i = 0; i < plan->converted_inputs.size(); ++i) {
    if (!plan->converted_inputs[i].has_value()) continue;
    Require(i < inputs.size() && inputs[i].has_value(), "converts what is no array");
    inputs[i] = stride::Contiguous(*plan->converted_inputs[i], inputs[i]->shape);
    converts = true;
  }
  if (converts) {
    Require(depth == 0, "a conversion after a conversion");
    return Plan(operation, std::move(inputs), depth + 1);
  }
  if (plan->is_view || plan->through_new_output) return;
  std::vector<ops::Location> slots(inputs.size() + plan->outputs.size(),
                                   {.arena = 1, .offset = 64});
  ops::Bind(&plan->task, slots);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size,
                                          unsigned seed) {
  stride::v1::Operation operation;
  return stride::fuzz::MutateSerialized(&operation, bytes, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  stride::v1::Operation operation;
  if (!operation.ParseFromArray(bytes, static_cast<int>(size))) return 0;
  std::vector<ops::Input> inputs;
  for (const auto* operand : ops::OperandsOf(operation)) inputs.push_back(InputOf(*operand));
  Plan(operation, std::move(inputs), 0);
  return 0;
}
