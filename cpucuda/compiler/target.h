// The processor that code is made for.
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

// "native" is the processor this runs on, with the features it reports (a virtual machine may hide
// some).
absl::StatusOr<Target> FindTarget(const std::string& cpu);

// LLVM's names of the processor levels whose code the processor here runs, the best first.
std::vector<std::string> PortableProcessors();

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> CreateTargetMachine(const Target& target,
                                                                         int optimization);

}  // namespace stride::cpucuda
