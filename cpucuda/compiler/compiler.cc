#include "cpucuda/compiler/compiler.h"

#include <cstdlib>
#include <mutex>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cpucuda/compiler/export_globals.h"
#include "cpucuda/compiler/front_end.h"
#include "cpucuda/compiler/inline_ptx.h"
#include "cpucuda/compiler/optimize.h"
#include "cpucuda/compiler/options.h"
#include "cpucuda/compiler/shared_object.h"
#include "cpucuda/compiler/spmd/shared_memory.h"
#include "cpucuda/compiler/spmd/spmd_pass.h"
#include "cpucuda/compiler/spmd/volatile_cuts.h"
#include "cpucuda/compiler/target.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

namespace stride::cpucuda {
namespace {

// Deeply nested source recurses deeply in Clang.
constexpr unsigned kStackBytes = 64u << 20;

absl::Status Lower(const CompileRequest& request, const Options& options, llvm::Module& module,
                   llvm::TargetMachine& machine, KernelTable& table) {
  if (absl::Status status = LowerInlinePtx(module); !status.ok()) return status;
  if (request.kind == SourceKind::kNativeLoops) {
    KeepOnly(module, table.kernels);
    Optimize(module, machine, options.optimization);
    return absl::OkStatus();
  }
  if (absl::Status status = ExportGlobals(module, table); !status.ok()) return status;
  MarkForInlining(module, table);
  InlineMarked(module, machine);
  if (absl::Status status = spmd::LowerSharedMemory(module, table); !status.ok()) return status;
  spmd::AnchorVolatileAccesses(module);
  Simplify(module, machine, options.optimization);
  if (absl::Status status = CutKernels(module, request.form, table); !status.ok()) return status;
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream)) {
    return absl::InternalError(absl::StrCat("the kernel pass made wrong code: ", stream.str()));
  }
  Optimize(module, machine, options.optimization);
  return absl::OkStatus();
}

// Keeps errors of LLVM's later stages and drops its remarks on loops that it could not vectorize.
struct KeepErrors : llvm::DiagnosticHandler {
  explicit KeepErrors(std::string* kept) : kept(kept) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() != llvm::DS_Error) return true;
    llvm::raw_string_ostream stream(*kept);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    return true;
  }
  std::string* kept;
};

absl::StatusOr<CompileResult> CompileHere(const CompileRequest& request) {
  bool contract = request.kind == SourceKind::kCudaKernels;
  absl::StatusOr<Options> options = ParseOptions(request.options, contract);
  if (!options.ok()) return options.status();
  absl::StatusOr<Target> target = FindTarget(request.cpu);
  if (!target.ok()) return target.status();
  auto machine = CreateTargetMachine(*target, options->optimization);
  if (!machine.ok()) return machine.status();
  llvm::LLVMContext context;
  std::string errors;
  context.setDiagnosticHandler(std::make_unique<KeepErrors>(&errors));
  absl::StatusOr<FrontEndResult> front = RunFrontEnd(request, *options, *target, context);
  if (!front.ok()) return front.status();
  front->module->setDataLayout((*machine)->createDataLayout());
  if (absl::Status status = Lower(request, *options, *front->module, **machine, front->table);
      !status.ok()) {
    return status;
  }
  absl::StatusOr<std::string> object = MakeSharedObject(*front->module, **machine);
  if (!errors.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("the kernel cannot be made into code: ", errors));
  if (!object.ok()) return object.status();
  return CompileResult{std::move(*object), std::move(front->table.kernels),
                       std::move(front->table.globals), std::move(front->log)};
}

// LLVM ends the process on errors that it cannot report. Inside a recovery context, control returns
// here.
void OnFatalError(void* reason, const char* message, bool) {
  *static_cast<std::string*>(reason) = message;
  if (auto* recovery = llvm::CrashRecoveryContext::GetCurrent()) recovery->HandleExit(1);
}

// For LLVM's own allocations; std::set_new_handler covers the others.
void OnNoMemory(void*, const char*, bool) {
  std::get_new_handler() != nullptr ? std::get_new_handler()() : std::abort();
}

absl::StatusOr<CompileResult> Attempt(const CompileRequest& request) {
  absl::StatusOr<CompileResult> result = absl::InternalError("the compiler did not finish");
  std::string reason;
  llvm::ScopedFatalErrorHandler handler(OnFatalError, &reason);
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext recovery;
  bool finished = recovery.RunSafelyOnThread([&] { result = CompileHere(request); }, kStackBytes);
  llvm::CrashRecoveryContext::Disable();
  if (finished) return result;
  return absl::InternalError(
      absl::StrCat("the compiler failed on this source", reason.empty() ? "" : ": ", reason));
}

}  // namespace

absl::StatusOr<CompileResult> Compile(const CompileRequest& request) {
  static std::mutex mutex;
  static const bool installed = (llvm::install_bad_alloc_error_handler(OnNoMemory), true);
  (void)installed;
  std::lock_guard<std::mutex> lock(mutex);
  absl::StatusOr<CompileResult> result = Attempt(request);
  bool other_way = request.kind == SourceKind::kCudaKernels && !request.form.has_value() &&
                   (absl::IsInternal(result.status()) || absl::IsUnimplemented(result.status()));
  if (!other_way) return result;
  // The loop form has limits, and perhaps faults, that the simpler form lacks.
  CompileRequest again = request;
  again.form = ThreadForm::kPerThread;
  absl::StatusOr<CompileResult> simple = Attempt(again);
  if (!simple.ok()) return result;
  for (CompiledKernel& kernel : simple->kernels)
    kernel.form_reason = std::string(result.status().message());
  return simple;
}

}  // namespace stride::cpucuda
