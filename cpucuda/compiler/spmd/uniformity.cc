#include "cpucuda/compiler/spmd/uniformity.h"

#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Analysis/TargetTransformInfoImpl.h"
#include "llvm/Analysis/UniformityAnalysis.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"

namespace stride::cpucuda::spmd {
namespace {

bool IsSource(const llvm::Value* value) {
  const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
  if (instruction == nullptr) return false;
  // Lowered shared atomics read what other threads just wrote.
  if (IsThreadIndex(instruction) || instruction->hasMetadata(kSerial)) return true;
  // Each thread has its own copy.
  if (llvm::isa<llvm::AllocaInst>(instruction)) return true;
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(instruction)) return !load->isSimple();
  // Each thread's own read-modify-write sees another thread's value; so may any call that touches
  // memory.
  return instruction->isAtomic() ||
         (llvm::isa<llvm::CallBase>(instruction) && instruction->mayReadOrWriteMemory());
}

// LLVM's analysis asks a target where divergence begins; here it is the thread index.
class ThreadTarget : public llvm::TargetTransformInfoImplCRTPBase<ThreadTarget> {
 public:
  explicit ThreadTarget(const llvm::DataLayout& layout) : TargetTransformInfoImplCRTPBase(layout) {}
  bool hasBranchDivergence(const llvm::Function*) const { return true; }
  bool isSourceOfDivergence(const llvm::Value* value) const { return IsSource(value); }
  bool isAlwaysUniform(const llvm::Value*) const { return false; }
};

}  // namespace

void FindVarying(Shape& shape) {
  llvm::Function& function = *shape.function;
  llvm::FunctionAnalysisManager analyses;
  analyses.registerPass([] {
    return llvm::TargetIRAnalysis([](const llvm::Function& function) {
      return llvm::TargetTransformInfo(ThreadTarget(function.getParent()->getDataLayout()));
    });
  });
  llvm::PassBuilder().registerFunctionAnalyses(analyses);
  llvm::UniformityInfo& uniformity = analyses.getResult<llvm::UniformityInfoAnalysis>(function);
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    bool varying = uniformity.isDivergent(&instruction);
    // A loop counter is equal for all threads in the loop, but not after they have left it in
    // different rounds.
    for (const llvm::Use& use : instruction.uses())
      varying = varying || uniformity.isDivergentUse(use);
    if (varying) shape.varying.insert(&instruction);
    if (instruction.isTerminator() && uniformity.hasDivergentTerminator(*instruction.getParent())) {
      shape.divergent_branches.insert(&instruction);
    }
  }
}

}  // namespace stride::cpucuda::spmd
