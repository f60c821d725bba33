#include "cpucuda/compiler/front_end.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clang/AST/Attr.h"
#include "clang/AST/Decl.h"
#include "clang/Basic/TargetInfo.h"
#include "clang/CodeGen/CodeGenAction.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/CompilerInvocation.h"
#include "clang/Frontend/FrontendActions.h"
#include "clang/Frontend/MultiplexConsumer.h"
#include "clang/Frontend/TextDiagnosticPrinter.h"
#include "cpucuda/compiler/asm_constraints.h"
#include "cpucuda/compiler/header_names.h"
#include "cpucuda/compiler/kernel_reader.h"
#include "cpucuda/compiler/name_expressions.h"
#include "cpucuda/compiler/own_names.h"
#include "cpucuda/compiler/prelude_files.h"
#include "cpucuda/compiler/unsupported.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/VirtualFileSystem.h"
#include "server/base/unknown_entry.h"

namespace stride::cpucuda {
namespace {

constexpr char kSourceName[] = "kernel.cu";
constexpr char kPreludeFolder[] = "/stride/";
constexpr char kOwnNamesFile[] = "stride_own_names.h";

// Marks variables without a mark as device variables. The pragma that marks functions does not
// cover variables (see stride_default_device.h).
void MarkForDevice(clang::Decl* declaration) {
  if (auto* space = llvm::dyn_cast<clang::NamespaceDecl>(declaration)) {
    for (clang::Decl* inner : space->decls()) MarkForDevice(inner);
    return;
  }
  auto* variable = llvm::dyn_cast<clang::VarDecl>(declaration);
  if (variable == nullptr || variable->hasAttr<clang::CUDADeviceAttr>() ||
      variable->hasAttr<clang::CUDAConstantAttr>() || variable->hasAttr<clang::CUDASharedAttr>()) {
    return;
  }
  variable->addAttr(clang::CUDADeviceAttr::CreateImplicit(variable->getASTContext()));
}

// Calls back with the finished syntax tree.
class TreeConsumer : public clang::ASTConsumer {
 public:
  TreeConsumer(std::function<void(clang::ASTContext&)> done, bool default_device)
      : done_(std::move(done)), default_device_(default_device) {}
  bool HandleTopLevelDecl(clang::DeclGroupRef group) override {
    if (default_device_) std::for_each(group.begin(), group.end(), MarkForDevice);
    return true;
  }
  void HandleTranslationUnit(clang::ASTContext& context) override { done_(context); }

 private:
  std::function<void(clang::ASTContext&)> done_;
  bool default_device_;
};

class ListAction : public clang::ASTFrontendAction {
 public:
  ListAction(bool default_device, std::function<void(clang::ASTContext&)> done)
      : done_(std::move(done)), default_device_(default_device) {}
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance&,
                                                        llvm::StringRef) override {
    return std::make_unique<TreeConsumer>(done_, default_device_);
  }

 private:
  std::function<void(clang::ASTContext&)> done_;
  bool default_device_;
};

class EmitAction : public clang::EmitLLVMOnlyAction {
 public:
  EmitAction(llvm::LLVMContext* context, bool default_device,
             std::function<void(clang::ASTContext&)> done)
      : EmitLLVMOnlyAction(context), done_(std::move(done)), default_device_(default_device) {}
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& instance,
                                                        llvm::StringRef file) override {
    std::vector<std::unique_ptr<clang::ASTConsumer>> consumers;
    consumers.push_back(std::make_unique<TreeConsumer>(done_, default_device_));
    consumers.push_back(EmitLLVMOnlyAction::CreateASTConsumer(instance, file));
    return std::make_unique<clang::MultiplexConsumer>(std::move(consumers));
  }

 private:
  std::function<void(clang::ASTContext&)> done_;
  bool default_device_;
};

// Parts of the prelude that NVRTC has without an include, but that few kernels use: each costs
// milliseconds of every compilation, so the source must have one of its words.
struct RarePart {
  const char* file;
  std::vector<const char*> words;
};

std::vector<std::string> RareParts(const std::string& source) {
  static const auto& kParts = *new std::vector<RarePart>{
      {"stride_simd_words.h", {"__v"}},
      {"stride_texture.h", {"cudaTextureObject_t", "tex1D", "tex2D", "tex3D"}},
      {"stride_special_functions.h",
       {"nan", "norm", "erf", "hypot", "sincospi", "jn", "yn", "llr", "scalbln", "normcdf"}}};
  std::vector<std::string> files;
  for (const RarePart& part : kParts) {
    bool used = std::any_of(part.words.begin(), part.words.end(),
                            [&](const char* word) { return absl::StrContains(source, word); });
    if (used) files.push_back(part.file);
  }
  return files;
}

std::vector<std::string> Arguments(const CompileRequest& request, const Options& options,
                                   const Target& target) {
  std::vector<std::string> arguments = {
      "-triple", target.triple, "-target-cpu", target.cpu, "-std=" + options.standard, "-O2",
      "-disable-llvm-passes", "-nostdsysteminc", "-nobuiltininc", "-isystem", kPreludeFolder,
      "-fdeclspec", "-fno-threadsafe-statics", "-fno-rtti", "-mrelocation-model", "pic",
      "-pic-level", "2", "-ferror-limit", "30", "-fmessage-length=0", "-Wno-unused-value",
      "-Wno-unknown-cuda-version", "-Wno-undefined-internal", "-Wno-psabi", "-Wno-pass-failed",
      "-Wno-unknown-pragmas",
      // NVRTC accepts both.
      "-Wno-register", "-Wno-error=c++11-narrowing", "-fdiagnostics-show-note-include-stack",
      "-vectorize-loops", "-vectorize-slp",
      "-ffp-contract=" + std::string(options.contract ? "fast" : "off"), "-main-file-name",
      kSourceName};
  for (const std::string& feature : target.features) {
    arguments.push_back("-target-feature");
    arguments.push_back(feature);
  }
  arguments.insert(arguments.end(), options.macros.begin(), options.macros.end());
  if (options.contract) arguments.push_back("-D__STRIDE_CONTRACT__=1");
  if (options.fast_math) arguments.push_back("-D__USE_FAST_MATH__=1");
  if (request.kind == SourceKind::kCudaKernels) {
    for (const char* more :
         {"-aux-triple", target.triple.c_str(), "-fcuda-is-device",
          "-fcuda-allow-variadic-functions", "-include", "stride_cuda.h", "-x", "cuda"}) {
      arguments.push_back(more);
    }
    for (std::string& file : RareParts(request.source)) {
      arguments.push_back("-include");
      arguments.push_back(std::move(file));
    }
    if (options.default_device) {
      arguments.push_back("-include");
      arguments.push_back("stride_default_device.h");
    }
    arguments.push_back("-include");  // last: see OwnNames
    arguments.push_back(kOwnNamesFile);
  } else {
    // Mathematics of floats takes 0.65 to 0.85 of the time that vectors of half the width take.
    for (const char* more :
         {"-include", "stride_native.h", "-x", "c++", "-mprefer-vector-width=512"})
      arguments.push_back(more);
  }
  arguments.push_back(kSourceName);
  return arguments;
}

llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> MemoryFiles(const std::string& source,
                                                            const std::string& own_names) {
  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  files->setCurrentWorkingDirectory("/");
  files->addFile(kSourceName, 0, llvm::MemoryBuffer::getMemBufferCopy(source, kSourceName));
  for (const PreludeFile* file = PreludeFilesBegin(); file != PreludeFilesEnd(); ++file) {
    llvm::StringRef text(file->text.data(), file->text.size());
    std::string name(file->name);
    files->addFile(kPreludeFolder + name, 0, llvm::MemoryBuffer::getMemBuffer(text, name));
  }
  files->addFile(std::string(kPreludeFolder) + kOwnNamesFile, 0,
                 llvm::MemoryBuffer::getMemBufferCopy(own_names, kOwnNamesFile));
  for (const auto& [name, text] : HeaderNames())
    files->addFile(kPreludeFolder + name, 0, llvm::MemoryBuffer::getMemBufferCopy(text, name));
  return files;
}

// Runs one action over `source`; the text of all diagnostics goes to `log`. True when there was no
// error.
bool RunOnce(clang::FrontendAction& action, const std::vector<std::string>& arguments,
             const std::string& source, const std::string& own_names, std::string& log) {
  llvm::raw_string_ostream stream(log);
  clang::CompilerInstance instance;
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  auto shown = llvm::makeIntrusiveRefCnt<clang::DiagnosticOptions>();
  clang::DiagnosticsEngine early(llvm::makeIntrusiveRefCnt<clang::DiagnosticIDs>(), shown,
                                 new clang::TextDiagnosticPrinter(stream, shown.get()));
  if (!clang::CompilerInvocation::CreateFromArgs(instance.getInvocation(), pointers, early))
    return false;
  instance.createDiagnostics(
      new clang::TextDiagnosticPrinter(stream, &instance.getDiagnosticOpts()));
  instance.createFileManager(MemoryFiles(source, own_names));
  instance.createSourceManager(instance.getFileManager());
  instance.getFrontendOpts().DisableFree = false;
  instance.setVerboseOutputStream(llvm::nulls());
  bool done = instance.ExecuteAction(action);
  stream.flush();
  return done && !instance.getDiagnostics().hasErrorOccurred();
}

// Runs the action that `make` returns; again while the source declares names of the prelude itself,
// which then mean the source's declarations. The log is that of the last run.
bool Run(const std::function<clang::FrontendAction*()>& make, std::vector<std::string> arguments,
         const std::string& source, OwnNames* own_names, std::string& log) {
  const std::string given = log;
  for (;;) {
    const bool done = RunOnce(*make(), arguments, source, own_names->Header(), log);
    const bool again = !done && own_names->AddFrom(log);
    log = OwnNames::AsSpelled(std::move(log));
    if (!again) return done;
    log = given;
  }
}

absl::Status SourceError(const std::string& log) {
  std::string feature = UnsupportedFeature(log);
  if (!feature.empty()) {
    return absl::UnimplementedError(absl::StrCat("the CPU device has no ", feature, "\n", log));
  }
  if (LooksLikeHostCode(log)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the source has host code; give the kernels and device functions alone, "
                     "without main(), <<<>>> and calls of the CUDA runtime\n",
                     log));
  }
  return absl::InvalidArgumentError(absl::StrCat("the kernel source does not compile\n", log));
}

absl::Status NoKernels(const KernelNames& found) {
  if (found.templates.empty()) return absl::InvalidArgumentError("the source defines no kernel");
  return absl::InvalidArgumentError(
      absl::StrCat("the source defines only templates; name the instances wanted, such as `",
                   found.templates[0], "<float>`"));
}

// Whether the source has a kernel, or a template of one, for each name expression. A name
// with less than its namespaces may be found through `using`: the compiler's word counts.
absl::Status CheckKnown(const std::vector<std::string>& names, const KernelNames& found) {
  std::vector<std::string> known = found.kernels;
  known.insert(known.end(), found.templates.begin(), found.templates.end());
  for (const std::string& name : names) {
    std::string plain = PlainName(name);
    bool is_known = std::any_of(known.begin(), known.end(), [&](const std::string& other) {
      return other == plain || absl::EndsWith(other, absl::StrCat("::", plain));
    });
    if (!is_known) return UnknownEntry(name, known);
  }
  return absl::OkStatus();
}

absl::Status CheckKnownGlobals(const std::vector<std::string>& names, const KernelNames& found) {
  for (const std::string& name : names) {
    const std::string plain = PlainName(name);
    bool is_known =
        std::any_of(found.variables.begin(), found.variables.end(), [&](const std::string& other) {
          return other == plain || absl::EndsWith(other, absl::StrCat("::", plain));
        });
    if (!is_known) return UnknownGlobal(name, found.variables);
  }
  return absl::OkStatus();
}

absl::Status TableError(const KernelTable& table) {
  return table.error.empty() ? absl::OkStatus() : absl::InvalidArgumentError(table.error);
}

}  // namespace

absl::StatusOr<FrontEndResult> RunFrontEnd(const CompileRequest& given, const Options& options,
                                           const Target& target, llvm::LLVMContext& context) {
  CompileRequest request = given;
  request.source = WithHostConstraints(std::move(request.source));
  std::vector<std::string> arguments = Arguments(request, options, target);
  FrontEndResult result;
  std::vector<std::string> names = request.entries;
  for (const auto* given : {&request.entries, &request.globals}) {
    for (const std::string& name : *given) {
      if (absl::Status status = CheckNameExpression(name); !status.ok()) return status;
    }
  }
  OwnNames own_names;
  auto list = [&](KernelNames* found) {
    result.log.clear();
    std::unique_ptr<ListAction> action;
    auto make = [&] {
      action = std::make_unique<ListAction>(options.default_device, [&](clang::ASTContext& tree) {
        *found = ListKernels(tree, request.kind);
      });
      return action.get();
    };
    return Run(make, arguments, request.source, &own_names, result.log);
  };
  if (names.empty()) {
    KernelNames found;
    if (!list(&found)) return SourceError(result.log);
    if (found.kernels.empty()) return NoKernels(found);
    names = std::move(found.kernels);
    result.log.clear();
  }
  std::string source = request.source;
  if (request.kind == SourceKind::kCudaKernels)
    source += EntryText(names) + GlobalText(request.globals);
  std::unique_ptr<EmitAction> emit;
  auto make = [&] {
    emit = std::make_unique<EmitAction>(
        &context, options.default_device, [&](clang::ASTContext& tree) {
          result.table = ReadKernels(tree, request.kind, names, request.globals);
        });
    return emit.get();
  };
  if (!Run(make, arguments, source, &own_names, result.log)) {
    std::string log = WithoutOurNames(result.log, names);
    // Diagnostics of a source that is wrong by itself show the names as the source spells them.
    KernelNames found;
    if (!list(&found)) return SourceError(result.log);
    if (absl::Status status = CheckKnown(names, found); !status.ok()) return status;
    absl::Status known = CheckKnownGlobals(request.globals, found);
    if (!known.ok()) return known;
    return SourceError(log);
  }
  result.log = WithoutOurNames(result.log, names);
  if (absl::Status status = TableError(result.table); !status.ok()) return status;
  result.module = emit->takeModule();
  if (result.module == nullptr) return absl::InternalError("the front end made no module");
  return result;
}

}  // namespace stride::cpucuda
