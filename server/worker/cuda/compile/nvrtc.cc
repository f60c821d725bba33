#include "server/worker/cuda/compile/nvrtc.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/worker/cuda/compile/stub_headers.h"
#include "server/worker/cuda/driver/dynamic_library.h"

namespace stride::cuda {
namespace {

// Quoted includes are searched in the source's folder; below a file that is not a folder there is
// none. The log shows only the last component.
constexpr char kProgramName[] = "/dev/null/kernel.cu";

constexpr const char* kHeadersOfNvcc[] = {"math.h", "float.h", "limits.h", "stdint.h"};

// Whether the log reports an undeclared name of the form that those headers use: FLT_MAX, uint32_t.
bool LacksStandardName(absl::string_view log) {
  constexpr absl::string_view kBefore = "identifier \"", kAfter = "\" is undefined";
  for (size_t at = log.find(kBefore); at != log.npos; at = log.find(kBefore, at)) {
    at += kBefore.size();
    const absl::string_view name = log.substr(at, log.find('"', at) - at);
    if (!absl::StartsWith(log.substr(at + name.size()), kAfter)) continue;
    const bool macro = std::all_of(name.begin(), name.end(), [](unsigned char letter) {
      return std::isupper(letter) != 0 || std::isdigit(letter) != 0 || letter == '_';
    });
    if (macro || absl::EndsWith(name, "_t")) return true;
  }
  return false;
}

template <typename Function>
bool Resolve(const DynamicLibrary& library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(library.Find(name));
  return *function != nullptr;
}

bool ResolveAll(const DynamicLibrary& library, Nvrtc* nvrtc) {
  return Resolve(library, "nvrtcVersion", &nvrtc->version) &&
         Resolve(library, "nvrtcGetErrorString", &nvrtc->error_string) &&
         Resolve(library, "nvrtcGetNumSupportedArchs", &nvrtc->num_archs) &&
         Resolve(library, "nvrtcGetSupportedArchs", &nvrtc->archs) &&
         Resolve(library, "nvrtcCreateProgram", &nvrtc->create) &&
         Resolve(library, "nvrtcDestroyProgram", &nvrtc->destroy) &&
         Resolve(library, "nvrtcAddNameExpression", &nvrtc->add_name) &&
         Resolve(library, "nvrtcCompileProgram", &nvrtc->compile) &&
         Resolve(library, "nvrtcGetLoweredName", &nvrtc->lowered_name) &&
         Resolve(library, "nvrtcGetProgramLogSize", &nvrtc->log_size) &&
         Resolve(library, "nvrtcGetProgramLog", &nvrtc->log) &&
         Resolve(library, "nvrtcGetCUBINSize", &nvrtc->cubin_size) &&
         Resolve(library, "nvrtcGetCUBIN", &nvrtc->cubin) &&
         Resolve(library, "nvrtcGetPTXSize", &nvrtc->ptx_size) &&
         Resolve(library, "nvrtcGetPTX", &nvrtc->ptx);
}

// The headers next to the opened library: <toolkit>/lib64/libnvrtc.so -> <toolkit>/include.
std::string FindHeaders(const Nvrtc& nvrtc) {
  std::vector<std::string> candidates;
  std::string path = DynamicLibrary::PathOf(reinterpret_cast<const void*>(nvrtc.version));
  if (char* real = realpath(path.c_str(), nullptr)) {
    path = real;
    free(real);
  }
  for (int up = 0; up < 2 && !path.empty(); ++up) {
    path.resize(std::min(path.size(), path.rfind('/')));
    candidates.push_back(path.substr(0, path.rfind('/')) + "/include");
  }
  candidates.push_back("/usr/local/cuda/include");
  for (const std::string& folder : candidates) {
    if (access((folder + "/cuda_fp16.h").c_str(), R_OK) == 0) return folder;
  }
  return "";
}

absl::Status NvrtcStatus(const Nvrtc& nvrtc, nvrtcResult result) {
  const bool memory = result == NVRTC_ERROR_OUT_OF_MEMORY;
  return absl::Status(memory ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInternal,
                      absl::StrCat("the CUDA compiler failed: ", nvrtc.error_string(result)));
}

bool Virtual(const std::vector<std::string>& options) {
  return std::any_of(options.begin(), options.end(), [](const std::string& option) {
    return absl::StartsWith(option, "--gpu-architecture=compute_");
  });
}

std::string ReadText(nvrtcProgram program, decltype(&::nvrtcGetPTXSize) size_of,
                     decltype(&::nvrtcGetPTX) get) {
  size_t size = 0;
  if (size_of(program, &size) != NVRTC_SUCCESS || size == 0) return "";
  std::string text(size, '\0');
  if (get(program, text.data()) != NVRTC_SUCCESS) return "";
  return text;
}

std::string WithoutZero(std::string text) {
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Nvrtc>> Nvrtc::Load() {
  absl::StatusOr<DynamicLibrary> library =
      DynamicLibrary::Open("CUDA compiler (NVRTC)", {"libnvrtc.so.13", "libnvrtc.so.12"});
  if (!library.ok()) return library.status();
  auto nvrtc = std::make_unique<Nvrtc>();
  if (!ResolveAll(*library, nvrtc.get())) {
    return absl::UnavailableError("the CUDA compiler (NVRTC) is too old: 12.0 or later is needed");
  }
  int major = 0, minor = 0, count = 0;
  nvrtc->version(&major, &minor);
  nvrtc->version_text = absl::StrCat(major, ".", minor);
  nvrtc->num_archs(&count);
  std::vector<int> archs(std::max(count, 1), 0);
  nvrtc->archs(archs.data());
  nvrtc->newest_arch = *std::max_element(archs.begin(), archs.end());
  nvrtc->include_folder = FindHeaders(*nvrtc);
  return nvrtc;
}

bool Nvrtc::LoadBuiltins() const {
  const std::string path = DynamicLibrary::PathOf(reinterpret_cast<const void*>(version));
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return false;
  const std::string name =
      absl::StrCat(path.substr(0, slash), "/libnvrtc-builtins.so.", version_text);
  return DynamicLibrary::Open("NVRTC's built-in functions", {name.c_str()}).ok();
}

absl::StatusOr<NvrtcResult> RunNvrtc(const Nvrtc& nvrtc, const std::string& source,
                                     const std::vector<std::string>& options,
                                     const std::vector<std::string>& name_expressions,
                                     GroupsFrom groups) {
  const StubHeaders& stubs =
      groups == GroupsFrom::kOurs ? StubHeaders::Get() : StubHeaders::WithoutGroups();
  nvrtcProgram program = nullptr;
  nvrtcResult result =
      nvrtc.create(&program, source.c_str(), kProgramName, static_cast<int>(stubs.texts.size()),
                   stubs.texts.data(), stubs.names.data());
  if (result != NVRTC_SUCCESS) return NvrtcStatus(nvrtc, result);
  absl::Cleanup destroy = [&] { nvrtc.destroy(&program); };
  for (const std::string& name : name_expressions) {
    result = nvrtc.add_name(program, name.c_str());
    if (result != NVRTC_SUCCESS) return NvrtcStatus(nvrtc, result);
  }
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());
  result = nvrtc.compile(program, static_cast<int>(pointers.size()), pointers.data());
  NvrtcResult compiled;
  compiled.log = WithoutZero(ReadText(program, nvrtc.log_size, nvrtc.log));
  if (result == NVRTC_ERROR_COMPILATION || result == NVRTC_ERROR_INVALID_OPTION ||
      result == NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID) {
    return compiled;
  }
  if (result != NVRTC_SUCCESS) return NvrtcStatus(nvrtc, result);
  for (const std::string& name : name_expressions) {
    const char* lowered = nullptr;
    if (nvrtc.lowered_name(program, name.c_str(), &lowered) != NVRTC_SUCCESS) return compiled;
    compiled.lowered_names.push_back(lowered);
  }
  compiled.object = Virtual(options) ? WithoutZero(ReadText(program, nvrtc.ptx_size, nvrtc.ptx))
                                     : ReadText(program, nvrtc.cubin_size, nvrtc.cubin);
  compiled.ok = !compiled.object.empty();
  return compiled;
}

absl::StatusOr<NvrtcResult> RunLikeNvcc(const Nvrtc& nvrtc, const std::string& source,
                                        std::vector<std::string> options,
                                        const std::vector<std::string>& name_expressions,
                                        GroupsFrom groups) {
  absl::StatusOr<NvrtcResult> plain = RunNvrtc(nvrtc, source, options, name_expressions, groups);
  if (!plain.ok() || plain->ok || !LacksStandardName(plain->log)) return plain;
  for (const char* header : kHeadersOfNvcc) {
    options.push_back(absl::StrCat("--pre-include=", header));
  }
  absl::StatusOr<NvrtcResult> with = RunNvrtc(nvrtc, source, options, name_expressions, groups);
  // Otherwise return the log of the client's text alone.
  return with.ok() && with->ok ? with : plain;
}

}  // namespace stride::cuda
