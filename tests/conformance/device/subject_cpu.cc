#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "server/worker/cpu/code_compiler.h"
#include "server/worker/cpu/device.h"
#include "server/worker/cpu/device_list.h"
#include "tests/conformance/device/subject.h"

namespace stride::conformance {

absl::StatusOr<SubjectUnderTest> Subject() {
  const wire::DeviceList list = cpu::ListDevices();
  if (list.devices_size() == 0) return absl::UnavailableError(list.reason());
  SubjectUnderTest subject;
  subject.description = list.devices(0);
  // Code for an older processor, which this one runs too.
  if (const char* target = std::getenv("STRIDE_TEST_CPU_TARGET"); target != nullptr) {
    const auto targets = cpu::PortableTargets();
    if (std::find(targets.begin(), targets.end(), target) == targets.end())
      return absl::UnavailableError(absl::StrCat("this processor runs no code for ", target));
    subject.description.set_target(target);
  }
  subject.make_device = [] { return std::make_unique<cpu::CpuDevice>(); };
  subject.make_compiler = [] { return std::make_unique<cpu::CpuCompiler>(); };
  subject.faults_by_signal = true;
  subject.survives_asserts = true;
  return subject;
}

}  // namespace stride::conformance
