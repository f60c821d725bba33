#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/ops/reduce_by_blocks.h"
#include "server/wire/worker.pb.h"
#include "server/worker/runtime/code_compiler.h"
#include "server/worker/runtime/device.h"

namespace stride::conformance {

// The implementation under test in an executable of this suite.
struct SubjectUnderTest {
  wire::DeviceDescription description;
  std::function<std::unique_ptr<worker::Device>()> make_device;
  std::function<std::unique_ptr<worker::CodeCompiler>()> make_compiler;
  // Other devices of this kind whose arenas this one can map (wire::Link::peer).
  std::vector<wire::DeviceDescription> peers = {};
  // A kernel fault ends the process by a signal (CPU) rather than through Completions::Fatal.
  bool faults_by_signal = false;
  // An assert or a trap ends only its task; the process continues.
  bool survives_asserts = false;
  // Dynamic shared memory beyond 48 KiB.
  bool has_large_shared_memory = true;
  // How reductions without compiled code of their own run (ops/reduce_by_blocks.h).
  ops::Runs runs = ops::Runs::kEnd;
};

// One definition per executable. An error is the reason for skipping every test, such as "no NVIDIA
// driver".
absl::StatusOr<SubjectUnderTest> Subject();

}  // namespace stride::conformance
