#include "server/worker/cpu/compiler/optimize.h"

#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"

namespace stride::cpu {
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

}  // namespace stride::cpu
