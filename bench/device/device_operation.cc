#include "bench/device/device_operation.h"

#include <cstdio>
#include <cstdlib>

#include "server/ops/bind.h"
#include "server/worker/cpu/code_compiler.h"

namespace stride::bench {
namespace {

constexpr uint64_t kArena = 1, kModule = 1;
constexpr uint64_t kPage = 4096;

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

template <typename T>
T Expect(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

uint64_t RoundUp(int64_t bytes) {
  return (static_cast<uint64_t>(bytes) + kPage - 1) / kPage * kPage;
}

}  // namespace

DeviceOperation::DeviceOperation(const v1::Operation& operation,
                                 const std::vector<ArrayInfo>& inputs) {
  const std::vector<ops::Input> arrays(inputs.begin(), inputs.end());
  ops::Plan plan = Expect(ops::PlanOperation(operation, arrays, {ops::Input()}));
  task_ = std::move(plan.task);
  uint64_t size = 0;
  for (const std::vector<ArrayInfo>& some : {inputs, plan.outputs}) {
    for (const ArrayInfo& array : some) {
      offsets_.push_back(size);
      size += RoundUp(array.size_bytes());
    }
  }
  std::vector<ops::Location> slots;
  for (uint64_t offset : offsets_) slots.push_back({kArena, offset});
  ops::Bind(&task_, slots);
  UniqueFd file = Expect(CreateMemoryFile("arena", size));
  memory_ = Expect(MemoryMap::Map(file.get(), size, true));
  Check(arenas_.Map(kArena, size, file.get()));
  if (plan.code) Compile(*plan.code);
}

void DeviceOperation::Compile(const wire::Code& code) {
  auto compiled = Expect(cpu::CpuCompiler().Compile(Expect(cpu::NativeTarget()), code));
  UniqueFd object = Expect(CreateSealedCopy("object", compiled.object));
  modules_[kModule] = Expect(cpu::LoadedModule::Load(object.get(), compiled.description));
  if (task_.has_reduce()) task_.mutable_reduce()->set_module(kModule);
  if (task_.has_matmul()) task_.mutable_matmul()->set_module(kModule);
}

void DeviceOperation::Run(cpu::ThreadPool& pool) {
  const cpu::LoweringContext context{
      .arenas = &arenas_, .modules = &modules_, .pool = &pool, .fft_plans = nullptr};
  Check(Expect(cpu::Lower(context, task_)).run());
}

v1::Operation ReductionOf(v1::Reduction::Function function, std::vector<int32_t> axes) {
  v1::Operation operation;
  operation.mutable_reduction()->set_function(function);
  operation.mutable_reduction()->mutable_input()->set_handle(1);
  for (int32_t axis : axes) operation.mutable_reduction()->add_axes(axis);
  operation.add_outputs()->set_handle(100);
  return operation;
}

v1::Operation MatmulOf() {
  v1::Operation operation;
  operation.mutable_matmul()->mutable_left()->set_handle(1);
  operation.mutable_matmul()->mutable_right()->set_handle(2);
  operation.add_outputs()->set_handle(100);
  return operation;
}

}  // namespace stride::bench
