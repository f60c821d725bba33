#include "bench/service/nvrtc.h"

#include <dlfcn.h>
#include <glob.h>

#include <vector>

#include "bench/service/timing.h"

namespace stride::bench {
namespace {

// Names for each CUDA version that the daemon supports, newest first.
constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

void* OpenLibrary() {
  for (const char* name : kNames) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  void* library = nullptr;
  glob_t found;
  if (glob("/usr/local/cuda*/lib64/libnvrtc.so.*", 0, nullptr, &found) == 0) {
    for (size_t i = found.gl_pathc; i-- > 0 && library == nullptr;)
      library = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
  }
  globfree(&found);
  return library;
}

}  // namespace

// As nvrtc.h declares them, which the build need not have; 0 is success.
struct BareNvrtc::Functions {
  int (*create)(void** program, const char* source, const char* name, int num_headers,
                const char* const* headers, const char* const* names) = nullptr;
  int (*compile)(void* program, int num_options, const char* const* options) = nullptr;
  int (*cubin_size)(void* program, size_t* size) = nullptr;
  int (*cubin)(void* program, char* bytes) = nullptr;
  int (*destroy)(void** program) = nullptr;

  bool Resolve(void* library) {
    auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    return find(create, "nvrtcCreateProgram") && find(compile, "nvrtcCompileProgram") &&
           find(cubin_size, "nvrtcGetCUBINSize") && find(cubin, "nvrtcGetCUBIN") &&
           find(destroy, "nvrtcDestroyProgram");
  }
};

BareNvrtc::BareNvrtc() : functions_(std::make_unique<Functions>()) {}
BareNvrtc::~BareNvrtc() = default;

std::unique_ptr<BareNvrtc> BareNvrtc::Open(const std::string& target) {
  const size_t at = target.find("sm_");
  void* library = at == std::string::npos ? nullptr : OpenLibrary();
  std::unique_ptr<BareNvrtc> nvrtc(new BareNvrtc);
  if (library == nullptr || !nvrtc->functions_->Resolve(library)) return nullptr;
  nvrtc->architecture_ = "--gpu-architecture=" + target.substr(at);
  if (!nvrtc->Compile("extern \"C\" __global__ void warm(int* x) { x[0] = 1; }")) return nullptr;
  return nvrtc;
}

std::optional<double> BareNvrtc::Compile(const std::string& source) const {
  const char* const options[] = {architecture_.c_str(), "--std=c++17"};
  const auto start = Clock::now();
  void* program = nullptr;
  if (functions_->create(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr) != 0)
    return std::nullopt;
  size_t size = 0;
  bool good = functions_->compile(program, 2, options) == 0 &&
              functions_->cubin_size(program, &size) == 0 && size > 0;
  if (good) {
    std::vector<char> cubin(size);
    good = functions_->cubin(program, cubin.data()) == 0;
  }
  functions_->destroy(&program);
  if (!good) return std::nullopt;
  return SecondsSince(start);
}

}  // namespace stride::bench
