#include "server/worker/cuda/compile/cuda_compiler.h"
#include "server/worker/cuda/cuda_device.h"
#include "server/worker/cuda/device_list.h"
#include "tests/conformance/device/subject.h"

namespace stride::conformance {

absl::StatusOr<SubjectUnderTest> Subject() {
  const wire::DeviceList list = cuda::ListDevices();
  if (list.devices_size() == 0) return absl::UnavailableError(list.reason());
  SubjectUnderTest subject;
  subject.description = list.devices(0);
  for (const wire::Link& link : list.links()) {
    if (!link.peer() || link.to() != subject.description.id()) continue;
    for (const wire::DeviceDescription& device : list.devices()) {
      if (device.id() == link.from()) subject.peers.push_back(device);
    }
  }
  subject.runs = ops::Runs::kNone;
  subject.make_device = [] { return std::make_unique<cuda::CudaDevice>(); };
  subject.make_compiler = [] { return std::make_unique<cuda::CudaCompiler>(); };
  return subject;
}

}  // namespace stride::conformance
