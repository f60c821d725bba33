#include "cpucuda/compiler/spmd/spmd_pass.h"

#include "absl/strings/str_cat.h"
#include "cpucuda/compiler/spmd/constant_tables.h"
#include "cpucuda/compiler/spmd/emit.h"
#include "cpucuda/compiler/spmd/form_choice.h"
#include "cpucuda/compiler/spmd/normalize.h"
#include "cpucuda/compiler/spmd/per_thread.h"
#include "cpucuda/compiler/spmd/regions.h"
#include "cpucuda/compiler/spmd/uniformity.h"
#include "cpucuda/compiler/spmd/values.h"
#include "cpucuda/compiler/spmd/volatile_cuts.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace stride::cpucuda {
namespace {

bool CallsItself(const llvm::Function& function) {
  for (const llvm::Instruction& instruction : llvm::instructions(function)) {
    if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
      if (call->getCalledFunction() == &function) return true;
    }
  }
  return false;
}

// Only a kernel's own body has a thread index.
absl::Status CheckOtherFunctions(llvm::Module& module, const llvm::StringSet<>& kernels) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration() || kernels.contains(function.getName())) continue;
    if (absl::Status status = spmd::RefuseInStep(function); !status.ok()) return status;
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
      if (!spmd::CalleeName(instruction).starts_with("__stride_")) continue;
      return absl::UnimplementedError(
          absl::StrCat("the CPU device has no thread index, barrier or shared memory in functions "
                       "that call themselves or "
                       "are called through a pointer: ",
                       function.getName().str()));
    }
  }
  return absl::OkStatus();
}

absl::Status MakeLoops(llvm::Function& function, CompiledKernel& kernel) {
  absl::StatusOr<spmd::Shape> shape = spmd::Normalize(function);
  if (!shape.ok()) return shape.status();
  spmd::FindVarying(*shape);
  if (absl::Status status = spmd::FindRegions(*shape); !status.ok()) return status;
  if (shape->has_warp_wait && shape->divergent) {
    return absl::UnimplementedError(spmd::kMeetsInPart);
  }
  spmd::PlaceValues(*shape);
  spmd::EmitBlockFunction(*shape);
  kernel.form = ThreadForm::kLoops;
  kernel.has_barrier = shape->has_barrier;
  kernel.private_bytes_per_thread = shape->bytes_per_thread;
  return absl::OkStatus();
}

absl::Status MakeThreads(llvm::Function& function, CompiledKernel& kernel) {
  kernel.form = ThreadForm::kPerThread;
  return spmd::MakePerThread(function, kernel.private_bytes_per_thread, kernel.has_barrier);
}

absl::Status CutOne(llvm::Function& function, std::optional<ThreadForm> form,
                    CompiledKernel& kernel) {
  if (spmd::WaitsForGrid(function)) {
    kernel.form_reason = spmd::kMeetsAsGrid;
    return MakeThreads(function, kernel);
  }
  if (form.has_value()) {
    kernel.form_reason = "as asked for";
    return *form == ThreadForm::kPerThread ? MakeThreads(function, kernel)
                                           : MakeLoops(function, kernel);
  }
  if (!spmd::HasWarpOperations(function)) {
    kernel.form_reason = spmd::kMeetsAtBarriers;
    return MakeLoops(function, kernel);
  }
  // The pass changes the kernel before it can decide, so a copy is kept.
  llvm::Module& module = *function.getParent();
  llvm::ValueToValueMapTy values;
  llvm::Function* copy = llvm::CloneFunction(&function, values);
  const std::string name = function.getName().str();
  absl::Status status = MakeLoops(function, kernel);
  if (absl::IsUnimplemented(status)) {
    module.getFunction(name)->eraseFromParent();
    copy->setName(name);
    kernel.form_reason = spmd::kMeetsInPart;
    return MakeThreads(*copy, kernel);
  }
  copy->eraseFromParent();
  kernel.form_reason = spmd::kMeetsTogether;
  return status;
}

llvm::StringSet<> Symbols(const std::vector<CompiledKernel>& kernels) {
  llvm::StringSet<> symbols;
  for (const CompiledKernel& kernel : kernels) symbols.insert(kernel.symbol);
  return symbols;
}

}  // namespace

void KeepOnly(llvm::Module& module, const std::vector<CompiledKernel>& kernels) {
  llvm::StringSet<> kept = Symbols(kernels);
  for (llvm::Function& function : module) {
    if (function.isDeclaration() || kept.contains(function.getName())) continue;
    function.setComdat(nullptr);
    function.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
}

void MarkForInlining(llvm::Module& module, const KernelTable& table) {
  KeepOnly(module, table.kernels);
  llvm::StringSet<> kernels = Symbols(table.kernels);
  for (llvm::Function& function : module) {
    if (function.isDeclaration() || kernels.contains(function.getName()) || CallsItself(function))
      continue;
    function.removeFnAttr(llvm::Attribute::NoInline);
    function.removeFnAttr(llvm::Attribute::OptimizeNone);
    function.addFnAttr(llvm::Attribute::AlwaysInline);
  }
}

absl::Status CutKernels(llvm::Module& module, std::optional<ThreadForm> form, KernelTable& table) {
  llvm::StringSet<> kernels = Symbols(table.kernels);
  if (absl::Status status = CheckOtherFunctions(module, kernels); !status.ok()) return status;
  for (CompiledKernel& kernel : table.kernels) {
    llvm::Function* function = module.getFunction(kernel.symbol);
    if (function == nullptr)
      return absl::InternalError(absl::StrCat("the entry of `", kernel.name, "` is gone"));
    spmd::FoldConstantTables(*function);
    absl::Status status = spmd::CutInStep(*function);
    if (status.ok()) status = CutOne(*function, form, kernel);
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("kernel `", kernel.name, "`: ", status.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace stride::cpucuda
