#include "cpucuda/compiler/spmd/shared_memory.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cpucuda/compiler/spmd/kernel_shape.h"
#include "cpucuda/runtime/block_context.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/ReplaceConstant.h"

namespace stride::cpucuda::spmd {
namespace {

constexpr uint32_t kDynamicAlignment = 64;
constexpr uint64_t kMaxStaticBytes = 1u << 30;

// Variables that the prelude's `__shared__` marked.
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

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

struct SharedVariable {
  llvm::GlobalVariable* global = nullptr;
  bool dynamic = false;
};

// Static ones in the order of the source, then the dynamic ones.
std::vector<SharedVariable> FindShared(llvm::Module& module,
                                       const std::vector<std::string>& dynamic_names) {
  std::vector<SharedVariable> found;
  for (llvm::GlobalVariable* variable : Marked(module)) {
    if (!variable->isDeclaration()) found.push_back({variable, false});
  }
  for (const std::string& name : dynamic_names) {
    llvm::GlobalVariable* variable = module.getGlobalVariable(name);
    if (variable != nullptr && variable->isDeclaration()) found.push_back({variable, true});
  }
  for (const char* name : {"llvm.global.annotations", "llvm.used", "llvm.compiler.used"}) {
    if (auto* list = module.getGlobalVariable(name)) list->eraseFromParent();
  }
  return found;
}

// Functions whose only calls were inlined still hold uses.
void DropUnusedFunctions(llvm::Module& module) {
  bool dropped = true;
  while (dropped) {
    dropped = false;
    for (llvm::Function& function : llvm::make_early_inc_range(module)) {
      function.removeDeadConstantUsers();
      if (function.isDeclaration() || !function.hasLocalLinkage() || !function.use_empty())
        continue;
      function.eraseFromParent();
      dropped = true;
    }
  }
}

using UsesOf = llvm::MapVector<llvm::GlobalVariable*, std::vector<llvm::Use*>>;

// The range of the block's buffer that a function reads and writes.
struct FunctionUses {
  UsesOf fixed, dynamic;
};
using UsesIn = llvm::MapVector<llvm::Function*, FunctionUses>;

absl::Status CollectUses(const SharedVariable& variable, UsesIn& functions) {
  llvm::convertUsersOfConstantsToInstructions({variable.global});
  variable.global->removeDeadConstantUsers();
  for (llvm::Use& use : variable.global->uses()) {
    auto* user = llvm::dyn_cast<llvm::Instruction>(use.getUser());
    if (user == nullptr) {
      return absl::UnimplementedError(
          absl::StrCat("the CPU device has no address of a __shared__ variable in a constant: ",
                       variable.global->getName().str()));
    }
    FunctionUses& uses = functions[user->getFunction()];
    (variable.dynamic ? uses.dynamic : uses.fixed)[variable.global].push_back(&use);
  }
  return absl::OkStatus();
}

void Replace(const std::vector<llvm::Use*>& uses, uint64_t offset, llvm::Function* reader) {
  for (llvm::Use* use : uses) {
    auto* at = llvm::cast<llvm::Instruction>(use->getUser());
    if (auto* phi = llvm::dyn_cast<llvm::PHINode>(at))
      at = phi->getIncomingBlock(*use)->getTerminator();
    llvm::IRBuilder<> builder(at);
    llvm::Value* base =
        builder.CreateCall(reader, {builder.getInt32(offsetof(BlockContext, shared))});
    use->set(builder.CreateInBoundsGEP(builder.getInt8Ty(), base, builder.getInt64(offset)));
  }
}

// Offsets of the static variables of one kernel, or of all.
class Layout {
 public:
  void Add(const llvm::GlobalVariable* variable) {
    auto [place, added] = offsets_.try_emplace(variable, 0);
    if (!added) return;
    const llvm::DataLayout& layout = variable->getParent()->getDataLayout();
    bytes_ = RoundUp(bytes_, std::max<uint64_t>(16, variable->getAlign().valueOrOne().value()));
    place->second = bytes_;
    bytes_ += layout.getTypeAllocSize(variable->getValueType());
  }
  void Add(const FunctionUses& uses) {
    for (auto& [variable, places] : uses.fixed) Add(variable);
    has_dynamic_ = has_dynamic_ || !uses.dynamic.empty();
  }
  // The dynamic part begins where the static one ends.
  uint64_t bytes() const { return has_dynamic_ ? RoundUp(bytes_, kDynamicAlignment) : bytes_; }
  void Apply(const FunctionUses& uses, llvm::Function* reader) const {
    for (auto& [variable, places] : uses.fixed) Replace(places, offsets_.lookup(variable), reader);
    for (auto& [variable, places] : uses.dynamic) Replace(places, bytes(), reader);
  }

 private:
  llvm::DenseMap<const llvm::GlobalVariable*, uint64_t> offsets_;
  uint64_t bytes_ = 0;
  bool has_dynamic_ = false;
};

}  // namespace

absl::Status LowerSharedMemory(llvm::Module& module, KernelTable& table) {
  UsesIn functions;
  // This step is first, because the lists that it removes use functions.
  const std::vector<SharedVariable> variables = FindShared(module, table.dynamic_shared);
  DropUnusedFunctions(module);
  for (const SharedVariable& variable : variables) {
    if (absl::Status status = CollectUses(variable, functions); !status.ok()) return status;
  }
  llvm::SmallPtrSet<llvm::Function*, 8> kernels;
  for (CompiledKernel& kernel : table.kernels) kernels.insert(module.getFunction(kernel.symbol));
  llvm::DenseMap<llvm::Function*, Layout> layouts;
  Layout common;
  bool own = true;
  for (auto& [function, uses] : functions) {
    layouts[function].Add(uses);
    common.Add(uses);
    own = own && kernels.contains(function);
  }
  llvm::Function* reader = PointerReader(module);
  for (auto& [function, uses] : functions) (own ? layouts[function] : common).Apply(uses, reader);
  for (CompiledKernel& kernel : table.kernels) {
    const Layout& layout = own ? layouts[module.getFunction(kernel.symbol)] : common;
    if (layout.bytes() > kMaxStaticBytes)
      return absl::InvalidArgumentError("static shared memory is larger than 1 GiB");
    kernel.static_shared_bytes = static_cast<uint32_t>(layout.bytes());
  }
  return absl::OkStatus();
}

}  // namespace stride::cpucuda::spmd
