// The processor for which code is generated.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace llvm {
class TargetMachine;
}

namespace stride::cpucuda {

struct Target {
  std::string triple;
  std::string cpu;
  std::vector<std::string> features;  // "+avx2", "-sse4a"
};

// "native" is the processor of this machine, with the features that it reports (a virtual machine
// may hide some).
absl::StatusOr<Target> FindTarget(const std::string& cpu);

// LLVM's names of the processor levels that this machine supports, the best first.
std::vector<std::string> PortableProcessors();

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> CreateTargetMachine(const Target& target,
                                                                         int optimization);

}  // namespace stride::cpucuda
