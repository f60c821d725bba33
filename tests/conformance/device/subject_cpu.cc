#include "server/worker/cpu/code_compiler.h"
#include "server/worker/cpu/device.h"
#include "server/worker/cpu/machine.h"
#include "tests/conformance/device/subject.h"

namespace stride::conformance {

absl::StatusOr<SubjectUnderTest> Subject() {
  absl::StatusOr<std::string> target = cpu::NativeTarget();
  if (!target.ok()) return target.status();
  SubjectUnderTest subject;
  subject.description.set_id("cpu:0");
  subject.description.set_kind("cpu");
  subject.description.set_target(*target);
  subject.description.set_host_memory(true);
  subject.description.set_memory_bytes(cpu::AvailableMemoryBytes());
  subject.description.set_arena_granularity_bytes(4096);
  subject.faults_by_signal = true;
  subject.missing_faults = {{"assert", "the prelude's assert checks nothing"},
                            {"trap", "the prelude's __trap does nothing"}};
  subject.make_device = [] { return std::make_unique<cpu::CpuDevice>(); };
  subject.make_compiler = [] { return std::make_unique<cpu::CpuCompiler>(); };
  return subject;
}

}  // namespace stride::conformance
