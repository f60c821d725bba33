#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/wire/worker.pb.h"
#include "server/worker/runtime/code_compiler.h"
#include "server/worker/runtime/device.h"

namespace stride::conformance {

// The implementation that an executable of this suite tests.
struct SubjectUnderTest {
  wire::DeviceDescription description;
  std::function<std::unique_ptr<worker::Device>()> make_device;
  std::function<std::unique_ptr<worker::CodeCompiler>()> make_compiler;
  // A fault of a kernel is a signal of this process (CPU); the handler that reports it is the
  // command loop's, not the device's.
  bool faults_by_signal = false;
  // Faults ("assert", "trap") that kernels cannot raise here, with the reason. The suite checks
  // that they still cannot.
  std::map<std::string, std::string> missing_faults;
  // Dynamic shared memory beyond 48 KiB.
  bool has_large_shared_memory = true;
};

// One definition for each executable. An error is the reason why there is nothing to test here,
// such as "no NVIDIA driver": every test is then skipped with it.
absl::StatusOr<SubjectUnderTest> Subject();

}  // namespace stride::conformance
