#include "cpucuda/compiler/optimize.h"

#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

namespace stride::cpucuda {
namespace {

struct Managers {
  Managers(llvm::TargetMachine& machine, llvm::PipelineTuningOptions tuning)
      : builder(&machine, tuning) {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(graphs);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, graphs, modules);
  }
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
};

llvm::OptimizationLevel Level(int optimization) {
  switch (optimization) {
    case 0:
    case 1:
      return llvm::OptimizationLevel::O1;
    case 2:
      return llvm::OptimizationLevel::O2;
    default:
      return llvm::OptimizationLevel::O3;
  }
}

// Limits for unrolling a loop over a private array: the array's bytes, and the unrolled loop's
// instructions.
constexpr uint64_t kMaxUnrolledArray = 1024;
constexpr unsigned kMaxUnrolled = 1024;

bool WalksPrivateArray(const llvm::Loop& loop) {
  const llvm::DataLayout& layout = loop.getHeader()->getModule()->getDataLayout();
  for (llvm::BasicBlock* block : loop.blocks()) {
    for (llvm::Instruction& instruction : *block) {
      llvm::Value* pointer = llvm::getLoadStorePointerOperand(&instruction);
      if (pointer == nullptr || loop.isLoopInvariant(pointer)) continue;
      auto* array = llvm::dyn_cast<llvm::AllocaInst>(llvm::getUnderlyingObject(pointer));
      if (array == nullptr) continue;
      auto size = array->getAllocationSize(layout);
      if (size && size->getFixedValue() <= kMaxUnrolledArray) return true;
    }
  }
  return false;
}

// A private array can become registers, or a table of constants, only if its indices are constants.
// So loops over small arrays are unrolled further than others, as compilers for GPUs do.
struct UnrollOverPrivateArrays : llvm::PassInfoMixin<UnrollOverPrivateArrays> {
  llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager&,
                              llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater&) {
    const unsigned rounds = results.SE.getSmallConstantTripCount(&loop);
    size_t size = 0;
    for (llvm::BasicBlock* block : loop.blocks()) size += block->sizeWithoutDebug();
    const bool short_enough = rounds > 1 && size <= kMaxUnrolled / rounds;
    if (short_enough && llvm::hasUnrollTransformation(&loop) == llvm::TM_Unspecified &&
        WalksPrivateArray(loop))
      llvm::addStringMetadataToLoop(&loop, "llvm.loop.unroll.full");
    return llvm::PreservedAnalyses::all();
  }
};

}  // namespace

void InlineMarked(llvm::Module& module, llvm::TargetMachine& machine) {
  Managers managers(machine, {});
  llvm::ModulePassManager passes;
  passes.addPass(llvm::AlwaysInlinerPass(false));
  passes.run(module, managers.modules);
}

void Simplify(llvm::Module& module, llvm::TargetMachine& machine, int optimization) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = false;
  Managers managers(machine, tuning);
  managers.builder.registerLateLoopOptimizationsEPCallback(
      [](llvm::LoopPassManager& loops, llvm::OptimizationLevel) {
        loops.addPass(UnrollOverPrivateArrays());
      });
  llvm::ModulePassManager passes;
  passes.addPass(managers.builder.buildModuleSimplificationPipeline(
      Level(optimization == 3 ? 2 : optimization), llvm::ThinOrFullLTOPhase::None));
  passes.run(module, managers.modules);
}

void Optimize(llvm::Module& module, llvm::TargetMachine& machine, int optimization) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = optimization >= 2;
  Managers managers(machine, tuning);
  managers.builder.buildPerModuleDefaultPipeline(Level(optimization)).run(module, managers.modules);
}

}  // namespace stride::cpucuda
