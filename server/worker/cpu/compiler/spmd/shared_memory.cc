#include "server/worker/cpu/compiler/spmd/shared_memory.h"

#include <cstddef>
#include <set>

#include "absl/strings/str_cat.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/ReplaceConstant.h"
#include "server/worker/cpu/compiler/spmd/kernel_shape.h"
#include "server/worker/cpu/kernel/block_context.h"

namespace stride::cpu::spmd {
namespace {

constexpr uint32_t kDynamicAlignment = 64;

// Variables the prelude's `__shared__` marked.
std::vector<llvm::GlobalVariable*> Marked(llvm::Module& module) {
  std::vector<llvm::GlobalVariable*> found;
  llvm::GlobalVariable* list = module.getGlobalVariable("llvm.global.annotations");
  if (list == nullptr) return found;
  auto* rows = llvm::dyn_cast<llvm::ConstantArray>(list->getInitializer());
  for (unsigned i = 0; rows != nullptr && i < rows->getNumOperands(); ++i) {
    auto* row = llvm::cast<llvm::ConstantStruct>(rows->getOperand(i));
    auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(row->getOperand(0)->stripPointerCasts());
    auto* text = llvm::dyn_cast<llvm::GlobalVariable>(row->getOperand(1)->stripPointerCasts());
    if (variable == nullptr || text == nullptr) continue;
    auto* words = llvm::dyn_cast<llvm::ConstantDataArray>(text->getInitializer());
    if (words != nullptr && words->isCString() && words->getAsCString() == "stride.shared")
      found.push_back(variable);
  }
  return found;
}

llvm::Function* PointerReader(llvm::Module& module) {
  llvm::LLVMContext& context = module.getContext();
  auto* type = llvm::FunctionType::get(llvm::PointerType::getUnqual(context),
                                       {llvm::Type::getInt32Ty(context)}, false);
  auto* function =
      llvm::cast<llvm::Function>(module.getOrInsertFunction(kPointer, type).getCallee());
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->setWillReturn();
  return function;
}

absl::Status Replace(llvm::GlobalVariable* variable, uint32_t offset, llvm::Function* reader) {
  llvm::convertUsersOfConstantsToInstructions({variable});
  variable->removeDeadConstantUsers();
  std::vector<llvm::Use*> uses;
  for (llvm::Use& use : variable->uses()) uses.push_back(&use);
  for (llvm::Use* use : uses) {
    auto* user = llvm::dyn_cast<llvm::Instruction>(use->getUser());
    if (user == nullptr) {
      return absl::UnimplementedError(
          absl::StrCat("the CPU device has no address of a __shared__ variable in a constant: ",
                       variable->getName().str()));
    }
    llvm::Instruction* at = user;
    if (auto* phi = llvm::dyn_cast<llvm::PHINode>(user))
      at = phi->getIncomingBlock(*use)->getTerminator();
    llvm::IRBuilder<> builder(at);
    llvm::Value* base =
        builder.CreateCall(reader, {builder.getInt32(offsetof(BlockContext, shared))});
    use->set(builder.CreateInBoundsGEP(builder.getInt8Ty(), base, builder.getInt64(offset)));
  }
  return absl::OkStatus();
}

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

absl::Status LowerSharedMemory(llvm::Module& module, const std::vector<std::string>& dynamic_names,
                               uint32_t& static_bytes) {
  std::vector<llvm::GlobalVariable*> marked = Marked(module);
  std::set<std::string> dynamic(dynamic_names.begin(), dynamic_names.end());
  for (const char* name : {"llvm.global.annotations", "llvm.used", "llvm.compiler.used"}) {
    if (auto* list = module.getGlobalVariable(name)) list->eraseFromParent();
  }
  llvm::Function* reader = PointerReader(module);
  const llvm::DataLayout& layout = module.getDataLayout();
  uint64_t offset = 0;
  for (llvm::GlobalVariable* variable : marked) {
    if (variable->isDeclaration() || variable->use_empty()) continue;
    offset = RoundUp(offset, std::max<uint64_t>(16, variable->getAlign().valueOrOne().value()));
    if (absl::Status status = Replace(variable, offset, reader); !status.ok()) return status;
    offset += layout.getTypeAllocSize(variable->getValueType());
    if (offset > (1u << 30))
      return absl::InvalidArgumentError("static shared memory is larger than 1 GiB");
  }
  static_bytes = RoundUp(offset, kDynamicAlignment);
  for (llvm::GlobalVariable& variable : llvm::make_early_inc_range(module.globals())) {
    bool extern_shared = variable.isDeclaration() && dynamic.count(variable.getName().str()) != 0;
    if (!extern_shared) continue;
    if (absl::Status status = Replace(&variable, static_bytes, reader); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace stride::cpu::spmd
