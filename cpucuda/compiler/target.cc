#include "cpucuda/compiler/target.h"

#include <algorithm>
#include <initializer_list>
#include <mutex>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

namespace stride::cpucuda {
namespace {

constexpr char kTriple[] = "x86_64-unknown-linux-gnu";

absl::StatusOr<const llvm::Target*> Lookup() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
  });
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(kTriple, error);
  if (target == nullptr) return absl::InternalError(absl::StrCat("no code generator: ", error));
  return target;
}

}  // namespace

absl::StatusOr<Target> FindTarget(const std::string& cpu) {
  absl::StatusOr<const llvm::Target*> target = Lookup();
  if (!target.ok()) return target.status();
  Target found{.triple = kTriple, .cpu = cpu};
  if (cpu == "native") {
    found.cpu = llvm::sys::getHostCPUName().str();
    for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
      // LLVM 19 warns of AVX10.1 with vectors of 256 bits next to AVX-512, in the log of each
      // module. AVX-512's own features cover all that AVX10.1 has.
      if (feature.first().starts_with("avx10")) continue;
      found.features.push_back(
          absl::StrCat(feature.second ? "+" : "-", std::string(feature.first())));
    }
    return found;
  }
  std::unique_ptr<llvm::MCSubtargetInfo> info((*target)->createMCSubtargetInfo(kTriple, "", ""));
  if (cpu.empty() || !info->isCPUStringValid(cpu)) {
    return absl::InvalidArgumentError(absl::StrCat("not a processor name that LLVM knows: ", cpu));
  }
  return found;
}

std::vector<std::string> PortableProcessors() {
  const auto features = llvm::sys::getHostCPUFeatures();
  const auto has = [&](std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(),
                       [&](const char* name) { return features.lookup(name); });
  };
  // Levels of the x86-64 psABI.
  if (!has({"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"})) return {};
  if (!has({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})) return {"x86-64-v3"};
  return {"x86-64-v4", "x86-64-v3"};
}

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> CreateTargetMachine(const Target& target,
                                                                         int optimization) {
  absl::StatusOr<const llvm::Target*> found = Lookup();
  if (!found.ok()) return found.status();
  llvm::TargetOptions options;
  auto level = llvm::CodeGenOpt::getLevel(optimization == 0 ? 0 : 2);
  std::unique_ptr<llvm::TargetMachine> machine(
      (*found)->createTargetMachine(target.triple, target.cpu, absl::StrJoin(target.features, ","),
                                    options, llvm::Reloc::PIC_, std::nullopt, *level));
  if (machine == nullptr) return absl::InternalError("no code generator for this processor");
  return machine;
}

}  // namespace stride::cpucuda
