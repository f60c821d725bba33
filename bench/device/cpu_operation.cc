#include "bench/device/cpu_operation.h"

#include "bench/device/check.h"
#include "server/worker/cpu/code_compiler.h"

namespace stride::bench {
namespace {

constexpr uint64_t kArena = 1, kModule = 1;

}  // namespace

CpuOperation::CpuOperation(const v1::Operation& operation, const std::vector<ArrayInfo>& inputs)
    : operation_(operation, inputs), task_(operation_.TaskIn(kArena, kModule)) {
  const uint64_t size = operation_.size();
  UniqueFd file = Expect(CreateMemoryFile("arena", size));
  memory_ = Expect(MemoryMap::Map(file.get(), size, true));
  Check(arenas_.Map(kArena, size, file.get()));
  if (operation_.code()) Compile(*operation_.code());
}

void CpuOperation::Compile(const wire::Code& code) {
  auto compiled = Expect(cpu::CpuCompiler().Compile(Expect(cpu::NativeTarget()), code));
  UniqueFd object = Expect(CreateSealedCopy("object", compiled.object));
  modules_[kModule] = Expect(cpu::LoadedModule::Load(object.get(), compiled.description));
}

void CpuOperation::Run(cpucuda::ThreadPool& pool) {
  const cpu::LoweringContext context{
      .arenas = &arenas_, .modules = &modules_, .pool = &pool, .fft_plans = nullptr};
  Check(Expect(cpu::Lower(context, task_)).run());
}

}  // namespace stride::bench
