#include "cpucuda/compiler/export_globals.h"

#include "absl/strings/str_cat.h"
#include "cpucuda/compiler/name_expressions.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

namespace stride::cpucuda {
namespace {

// The variable whose address the function returns (see GlobalText); nullptr when it returns none.
llvm::GlobalVariable* ReturnedVariable(const llvm::Function& function) {
  for (const llvm::Instruction& instruction : llvm::instructions(function)) {
    const auto* end = llvm::dyn_cast<llvm::ReturnInst>(&instruction);
    if (end == nullptr || end->getReturnValue() == nullptr) continue;
    return llvm::dyn_cast<llvm::GlobalVariable>(end->getReturnValue()->stripPointerCasts());
  }
  return nullptr;
}

// Other code may write it between launches, even if it is `static`, or `const` to the kernels.
void Export(llvm::GlobalVariable& variable, const std::string& symbol) {
  variable.setComdat(nullptr);
  variable.setLinkage(llvm::GlobalValue::ExternalLinkage);
  variable.setVisibility(llvm::GlobalValue::ProtectedVisibility);
  variable.setDSOLocal(true);
  variable.setExternallyInitialized(true);
  variable.setConstant(false);
  variable.setName(symbol);
}

}  // namespace

absl::Status ExportGlobals(llvm::Module& module, KernelTable& table) {
  llvm::DenseMap<llvm::GlobalVariable*, std::string> exported;
  for (size_t i = 0; i < table.globals.size(); ++i) {
    CompiledGlobal& global = table.globals[i];
    const std::string symbol = GlobalSymbol(i);
    llvm::Function* function = module.getFunction(symbol);
    llvm::GlobalVariable* variable = function == nullptr ? nullptr : ReturnedVariable(*function);
    if (variable == nullptr || variable->isDeclaration()) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", global.name, "` is no variable that the source defines"));
    }
    function->eraseFromParent();
    auto [place, is_new] = exported.try_emplace(variable, symbol);
    if (is_new) Export(*variable, symbol);
    global.symbol = place->second;
  }
  return absl::OkStatus();
}

}  // namespace stride::cpucuda
