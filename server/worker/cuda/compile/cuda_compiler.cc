#include "server/worker/cuda/compile/cuda_compiler.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/base/executable_stamp.h"
#include "server/base/unknown_entry.h"
#include "server/worker/codegen/client_text.h"
#include "server/worker/codegen/emit.h"
#include "server/worker/cuda/compile/compile_log.h"
#include "server/worker/cuda/compile/compile_options.h"
#include "server/worker/cuda/compile/demangled_signature.h"
#include "server/worker/cuda/compile/include_check.h"
#include "server/worker/cuda/compile/kernel_names.h"
#include "server/worker/cuda/compile/missing_header.h"
#include "server/worker/cuda/compile/parameter_layout.h"
#include "server/worker/cuda/compile/ptx_info.h"
#include "server/worker/cuda/compile/signature_query.h"
#include "server/worker/cuda/driver/module_image.h"

namespace stride::cuda {
namespace {

using worker::CompiledCode;

// From this architecture on, some instructions are available only with a target such as `sm_90a`.
// Clients' code is compiled for the device that runs it, so it may use them.
constexpr int kFirstSpecificArch = 90;

absl::StatusOr<int> ParseTarget(absl::string_view target) {
  int arch = 0;
  if (!absl::ConsumePrefix(&target, "cuda:sm_") || !absl::SimpleAtoi(target, &arch) || arch < 10) {
    return absl::InvalidArgumentError(absl::StrCat("not a CUDA target: ", target));
  }
  return arch;
}

// A device newer than the compiler gets PTX of the newest known architecture, which its driver
// translates.
std::string ArchOption(const Nvrtc& nvrtc, int arch, bool specific) {
  if (arch > nvrtc.newest_arch) {
    return absl::StrCat("--gpu-architecture=compute_", nvrtc.newest_arch);
  }
  return absl::StrCat("--gpu-architecture=sm_", arch,
                      specific && arch >= kFirstSpecificArch ? "a" : "");
}

void AddIncludePaths(const Nvrtc& nvrtc, std::vector<std::string>* options) {
  if (nvrtc.include_folder.empty()) return;
  options->push_back("--include-path=" + nvrtc.include_folder);
  // Location of CUB, Thrust and libcu++ in toolkits from 13.0 on.
  options->push_back("--include-path=" + nvrtc.include_folder + "/cccl");
}

absl::StatusOr<std::vector<KernelInfo>> ReadObject(const std::string& object) {
  return ImageKindOf(object) == ImageKind::kCubin ? ReadCubin(object) : ReadPtx(object);
}

absl::Status WrongSource(const NvrtcResult& result) {
  const std::string log = CleanLog(result.log);
  const std::optional<absl::Status> known = KnownRefusal(log);
  return known ? *known : absl::InvalidArgumentError(log);
}

absl::Status NoSuchKernel(const std::string& entry, const std::vector<KernelInfo>& kernels) {
  std::vector<std::string> names;
  for (const KernelInfo& kernel : kernels) names.push_back(NameOfSymbol(kernel.symbol));
  return UnknownEntry(entry, names);
}

const KernelInfo* FindSymbol(const std::vector<KernelInfo>& kernels, const std::string& symbol) {
  auto found = std::find_if(kernels.begin(), kernels.end(),
                            [&](const KernelInfo& kernel) { return kernel.symbol == symbol; });
  return found == kernels.end() ? nullptr : &*found;
}

absl::StatusOr<std::vector<VariableInfo>> ReadVariables(const std::string& object) {
  return ImageKindOf(object) == ImageKind::kCubin ? ReadCubinVariables(object)
                                                  : ReadPtxVariables(object);
}

absl::Status NoSuchVariable(const std::string& name, const std::vector<VariableInfo>& variables) {
  std::vector<std::string> names;
  for (const VariableInfo& variable : variables) names.push_back(NameOfSymbol(variable.symbol));
  return UnknownGlobal(name, names);
}

absl::Status DescribeVariable(const std::string& name, const std::string& symbol,
                              std::optional<DType> type, const std::vector<VariableInfo>& variables,
                              wire::ModuleDescription* description) {
  auto found = std::find_if(variables.begin(), variables.end(), [&](const VariableInfo& variable) {
    return variable.symbol == symbol;
  });
  if (found == variables.end()) return NoSuchVariable(name, variables);
  wire::GlobalDescription* global = description->add_globals();
  global->set_name(name);
  global->set_symbol(symbol);
  global->set_size(found->size);
  global->set_constant(found->constant);
  if (type) global->set_dtype(static_cast<int>(*type));
  return absl::OkStatus();
}

// The name expressions of a compilation, in the order of NvrtcResult::lowered_names: entries,
// globals and, with `types`, signatures of the former and types of the latter.
std::vector<std::string> NamesFor(const std::vector<std::string>& entries,
                                  const std::vector<std::string>& globals, bool types) {
  std::vector<std::string> names = entries;
  for (const std::string& global : globals) names.push_back(VariableExpression(global));
  if (!types) return names;
  for (const std::string& entry : entries) names.push_back(SignatureExpression(entry));
  for (const std::string& global : globals) names.push_back(VariableTypeExpression(global));
  return names;
}

absl::StatusOr<CompiledCode> Describe(NvrtcResult result, const std::vector<std::string>& entries,
                                      const std::vector<std::string>& globals, bool is_complete,
                                      bool* complete) {
  absl::StatusOr<std::vector<KernelInfo>> kernels = ReadObject(result.object);
  if (!kernels.ok()) return kernels.status();
  CompiledCode code;
  const std::vector<std::string>& names = result.lowered_names;
  const size_t num_names = entries.size() + globals.size();
  const bool typed = names.size() == 2 * num_names;
  for (size_t i = 0; i < entries.size(); ++i) {
    const KernelInfo* info = FindSymbol(*kernels, names[i]);
    if (info == nullptr) return NoSuchKernel(entries[i], *kernels);
    std::optional<std::vector<ParameterType>> types;
    if (typed) types = ParseSignature(names[num_names + i]);
    *code.description.add_kernels() = DescribeKernel(entries[i], *info, types);
  }
  absl::StatusOr<std::vector<VariableInfo>> variables = std::vector<VariableInfo>();
  if (!globals.empty()) variables = ReadVariables(result.object);
  if (!variables.ok()) return variables.status();
  for (size_t i = 0; i < globals.size(); ++i) {
    std::optional<DType> type;
    if (typed) type = ParseVariableType(names[num_names + entries.size() + i]);
    absl::Status status = DescribeVariable(globals[i], names[entries.size() + i], type, *variables,
                                           &code.description);
    if (!status.ok()) return status;
  }
  if (is_complete) *complete = kernels->size() == entries.size();
  code.log = CleanLog(result.log);
  code.object = std::move(result.object);
  return code;
}

}  // namespace

CudaCompiler::CudaCompiler() : nvrtc_(Nvrtc::Load()) {
  // An empty kernel also makes NVRTC open all its files, but takes as long as a small one.
  if (nvrtc_.ok() && !(*nvrtc_)->LoadBuiltins()) {
    (void)RunNvrtc(**nvrtc_, "__global__ void stride_warm() {}",
                   {absl::StrCat("--gpu-architecture=sm_", (*nvrtc_)->newest_arch)}, {});
  }
}

std::string CudaCompiler::Toolchain() {
  absl::StatusOr<std::unique_ptr<const Nvrtc>> nvrtc = Nvrtc::Load();
  if (!nvrtc.ok()) return "";
  // This program determines the emitted text and how it is launched.
  return absl::StrCat("nvrtc ", (*nvrtc)->version_text, " ", ExecutableStamp());
}

absl::StatusOr<CompiledCode> CudaCompiler::Compile(const std::string& target,
                                                   const wire::Code& code) {
  absl::StatusOr<int> arch = ParseTarget(target);
  if (!arch.ok()) return arch.status();
  const bool prebuilt = code.has_source() && (code.source().kind() == wire::Source::KIND_PTX ||
                                              code.source().kind() == wire::Source::KIND_BINARY);
  if (prebuilt) return TakePrebuilt(code.source());
  if (!nvrtc_.ok()) return nvrtc_.status();
  if (code.has_source()) return CompileSource(*arch, code.source());
  return CompileEmitted(*arch, code);
}

absl::StatusOr<CompiledCode> CudaCompiler::CompileEmitted(int arch, const wire::Code& code) {
  absl::StatusOr<std::string> text = codegen::EmitCuda(code);
  if (!text.ok()) return text.status();
  // NumPy rounds after every operation and keeps denormals; a fused multiply-add would round once.
  // Defaults keep division and square root exact and denormals alive.
  std::vector<std::string> options = {ArchOption(**nvrtc_, arch, false), "--std=c++17",
                                      "--fmad=false", "--extra-device-vectorization"};
  const std::string client_text = codegen::ClientTexts(code);
  if (!client_text.empty()) {
    if (absl::Status status = CheckIncludes(client_text); !status.ok()) return status;
    AddIncludePaths(**nvrtc_, &options);
  }
  absl::StatusOr<NvrtcResult> result = client_text.empty()
                                           ? RunNvrtc(**nvrtc_, *text, options, {})
                                           : RunLikeNvcc(**nvrtc_, *text, options, {});
  if (!result.ok()) return result.status();
  if (!result->ok && !client_text.empty()) return WrongSource(*result);
  if (!result->ok) {
    return absl::InternalError(
        absl::StrCat("emitted code does not compile: ", CleanLog(result->log)));
  }
  absl::StatusOr<std::vector<KernelInfo>> kernels = ReadObject(result->object);
  if (!kernels.ok()) return kernels.status();
  CompiledCode compiled;
  for (const KernelInfo& kernel : *kernels) {
    *compiled.description.add_kernels() = DescribeKernel(kernel.symbol, kernel, std::nullopt);
  }
  compiled.object = std::move(result->object);
  return compiled;
}

absl::StatusOr<CompiledCode> CudaCompiler::CompileSource(int arch, const wire::Source& source) {
  if (source.kind() != wire::Source::KIND_CUDA_CPP) {
    return absl::UnimplementedError("source of a kind that this compiler does not know");
  }
  if (source.text().find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("the source has a zero byte");
  }
  if (absl::Status status = CheckIncludes(source.text()); !status.ok()) return status;
  absl::StatusOr<std::vector<std::string>> options =
      TranslateOptions({source.options().begin(), source.options().end()});
  if (!options.ok()) return options.status();
  options->push_back(ArchOption(**nvrtc_, arch, true));
  AddIncludePaths(**nvrtc_, &*options);
  Job job{source.text(), *std::move(options), {source.globals().begin(), source.globals().end()}};
  const std::vector<std::string> entries(source.entries().begin(), source.entries().end());
  absl::StatusOr<CompiledCode> code = CompileJob(job, entries);
  const bool other_groups =
      absl::StrContains(job.text, "cooperative_groups") && !(*nvrtc_)->include_folder.empty();
  if (code.ok() || !other_groups) return code;
  // Our header has the common part; the toolkit's, if there is one, has the rest.
  job.groups = GroupsFrom::kToolkit;
  absl::StatusOr<CompiledCode> with_toolkit = CompileJob(job, entries);
  return with_toolkit.ok() ? with_toolkit : code;
}

absl::StatusOr<NvrtcResult> CudaCompiler::RunJob(const Job& job, const std::string& text,
                                                 const std::vector<std::string>& names) {
  return RunLikeNvcc(**nvrtc_, text, job.options, names, job.groups);
}

absl::StatusOr<CompiledCode> CudaCompiler::CompileJob(const Job& job,
                                                      const std::vector<std::string>& entries) {
  return entries.empty() ? CompileAll(job) : CompileEntries(job, entries);
}

absl::StatusOr<CompiledCode> CudaCompiler::CompileEntries(const Job& job,
                                                          const std::vector<std::string>& entries) {
  absl::StatusOr<NvrtcResult> result =
      RunJob(job, AppendSignatureQuery(job.text), NamesFor(entries, job.globals, /*types=*/true));
  if (!result.ok()) return result.status();
  if (!result->ok) {
    // Compile again without our added lines. If the source is wrong, the log then quotes only the
    // client's text; otherwise only our lines were at fault.
    result = RunJob(job, job.text, NamesFor(entries, job.globals, /*types=*/false));
    if (!result.ok()) return result.status();
    if (!result->ok) return WrongEntries(job, entries, *result);
  }
  bool complete = false;
  return Describe(*std::move(result), entries, job.globals, false, &complete);
}

absl::Status CudaCompiler::WrongEntries(const Job& job, const std::vector<std::string>& entries,
                                        const NvrtcResult& failed) {
  absl::StatusOr<NvrtcResult> alone = RunJob(job, job.text, {});
  if (!alone.ok()) return alone.status();
  if (!alone->ok) return WrongSource(*alone);
  absl::StatusOr<std::vector<KernelInfo>> kernels = ReadObject(alone->object);
  if (!kernels.ok()) return kernels.status();
  std::vector<std::string> known;
  for (const KernelInfo& kernel : *kernels) known.push_back(NameOfSymbol(kernel.symbol));
  // Uninstantiated templates leave nothing in the object.
  for (std::string& name : GuessTemplateNames(job.text)) known.push_back(std::move(name));
  for (const std::string& entry : entries) {
    auto knows = [&](const std::string& name) {
      return std::find(known.begin(), known.end(), name) != known.end();
    };
    if (!knows(entry) && !knows(entry.substr(0, entry.find('<'))))
      return UnknownEntry(entry, known);
  }
  for (const std::string& global : job.globals) {
    absl::StatusOr<NvrtcResult> one = RunJob(job, job.text, {VariableExpression(global)});
    if (!one.ok()) return one.status();
    if (!one->ok) return UnknownGlobal(global, GuessVariableNames(job.text));
  }
  return WrongSource(failed);
}

absl::StatusOr<CompiledCode> CudaCompiler::CompileAll(const Job& job) {
  // Usually the names can be read from the source, and one compilation suffices.
  const std::vector<std::string> guessed = GuessKernelNames(job.text);
  absl::StatusOr<NvrtcResult> result =
      RunJob(job, AppendSignatureQuery(job.text), NamesFor(guessed, job.globals, /*types=*/true));
  if (!result.ok()) return result.status();
  if (result->ok && !guessed.empty()) {
    bool complete = false;
    absl::StatusOr<CompiledCode> code =
        Describe(*std::move(result), guessed, job.globals, true, &complete);
    if (code.ok() && complete) return code;
  }
  // Otherwise read the names from the object.
  result = RunJob(job, job.text, {});
  if (!result.ok()) return result.status();
  if (!result->ok) return WrongSource(*result);
  absl::StatusOr<std::vector<KernelInfo>> kernels = ReadObject(result->object);
  if (!kernels.ok()) return kernels.status();
  if (kernels->empty()) {
    return absl::InvalidArgumentError(
        "the source has no __global__ function that is no template; name the instances wanted");
  }
  std::vector<std::string> found;
  for (const KernelInfo& kernel : *kernels) found.push_back(NameOfSymbol(kernel.symbol));
  absl::StatusOr<CompiledCode> named = CompileEntries(job, found);
  if (named.ok() || !UnknownEntryOf(named.status()).empty()) return named;
  // Some cannot be named, such as overloads: they go by their symbols, without types.
  result = RunJob(job, job.text, NamesFor({}, job.globals, /*types=*/false));
  if (!result.ok()) return result.status();
  if (!result->ok) return WrongSource(*result);
  bool complete = false;
  absl::StatusOr<CompiledCode> code =
      Describe(*std::move(result), {}, job.globals, false, &complete);
  if (!code.ok()) return code;
  for (const KernelInfo& kernel : *kernels) {
    *code->description.add_kernels() = DescribeKernel(kernel.symbol, kernel, std::nullopt);
  }
  return code;
}

absl::StatusOr<CompiledCode> CudaCompiler::TakePrebuilt(const wire::Source& source) {
  CompiledCode code;
  code.object = source.text();
  const ImageKind kind = ImageKindOf(code.object);
  if ((kind == ImageKind::kPtx) != (source.kind() == wire::Source::KIND_PTX)) {
    return absl::InvalidArgumentError(kind == ImageKind::kPtx
                                          ? "the binary is neither a cubin nor a fatbin"
                                          : "the text is a binary, not PTX");
  }
  if (absl::Status status = CheckImage(code.object); !status.ok()) return status;
  if (kind == ImageKind::kFatbin) {
    // Its contents may be compressed, and only the driver can read them.
    if (source.entries_size() == 0) {
      return absl::InvalidArgumentError("name the kernels of a fatbin: they cannot be listed");
    }
    for (const std::string& entry : source.entries()) {
      wire::KernelDescription* kernel = code.description.add_kernels();
      kernel->set_entry(entry);
      kernel->set_symbol(entry);
    }
    for (const std::string& name : source.globals()) {
      wire::GlobalDescription* global = code.description.add_globals();
      global->set_name(name);
      global->set_symbol(name);
      // Assume a constant, since the kind is unknown: otherwise it could show an earlier launch's
      // value.
      global->set_constant(true);
    }
    return code;
  }
  absl::StatusOr<std::vector<KernelInfo>> kernels = ReadObject(code.object);
  if (!kernels.ok()) return kernels.status();
  std::vector<std::string> entries(source.entries().begin(), source.entries().end());
  if (entries.empty()) {
    for (const KernelInfo& kernel : *kernels) entries.push_back(kernel.symbol);
  }
  for (const std::string& entry : entries) {
    const KernelInfo* info = FindSymbol(*kernels, entry);
    if (info == nullptr) return NoSuchKernel(entry, *kernels);
    *code.description.add_kernels() = DescribeKernel(entry, *info, std::nullopt);
  }
  if (source.globals().empty()) return code;
  absl::StatusOr<std::vector<VariableInfo>> variables = ReadVariables(code.object);
  if (!variables.ok()) return variables.status();
  for (const std::string& name : source.globals()) {
    absl::Status status = DescribeVariable(name, name, std::nullopt, *variables, &code.description);
    if (!status.ok()) return status;
  }
  return code;
}

}  // namespace stride::cuda
