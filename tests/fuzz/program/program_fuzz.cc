// Programs of clients, with and without a batch: checked and planned or refused, never more. Inputs
// are made from the handles.

#include <cstdint>
#include <vector>

#include "server/ops/program_plan.h"
#include "tests/fuzz/driver/proto_mutator.h"
#include "tests/fuzz/driver/require.h"

namespace {

using stride::fuzz::Require;
namespace ops = stride::ops;

// Arrays have one to three axes, since the first may be the batch's.
stride::ArrayInfo InputOf(uint64_t handle) {
  constexpr int64_t kExtents[] = {4, 3, 4, 1, 4, 0, 5, 4};
  std::vector<int64_t> shape = {4};
  for (uint64_t rank = handle / 16 % 3; rank-- > 0;) {
    handle = handle * 31 + 7;
    shape.push_back(kExtents[handle % 8]);
  }
  // Most are float32 or int64.
  const stride::DType dtypes[] = {stride::DType::kFloat32, stride::DType::kInt64,
                                  stride::DType::kFloat32, stride::DType::kBool};
  return stride::Contiguous(dtypes[handle % 4], shape);
}

void CheckSteps(const ops::ProgramPlan& plan) {
  for (const stride::ArrayInfo& output : plan.outputs) {
    Require(output.shape.size() <= 32, "too many axes");
    Require(output.shape.size() == output.strides.size(), "strides that do not fit the shape");
    for (int64_t extent : output.shape) Require(extent >= 0, "a negative extent");
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size,
                                          unsigned seed) {
  stride::v1::Program program;
  return stride::fuzz::MutateSerialized(&program, bytes, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  stride::v1::Program program;
  if (!program.ParseFromArray(bytes, static_cast<int>(size))) return 0;
  if (!ops::CheckProgram(program).ok()) return 0;
  std::vector<stride::ArrayInfo> inputs;
  for (const auto& input : program.inputs()) inputs.push_back(InputOf(input.handle()));
  auto plan = ops::PlanProgram(program, inputs, nullptr);
  if (plan.ok())
    CheckSteps(*plan);
  else
    Require(plan.status().code() != absl::StatusCode::kInternal, "an error of ours");
  return 0;
}
