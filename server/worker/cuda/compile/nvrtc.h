#pragma once

#include <nvrtc.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stride::cuda {

// NVRTC, opened at run time. Immutable; any thread.
struct Nvrtc {
  // UNAVAILABLE when no toolkit is installed.
  static absl::StatusOr<std::unique_ptr<const Nvrtc>> Load();
  // Opens the one library that NVRTC itself opens when it compiles. False: it is not next to NVRTC.
  bool LoadBuiltins() const;

  decltype(&::nvrtcVersion) version = nullptr;
  decltype(&::nvrtcGetErrorString) error_string = nullptr;
  decltype(&::nvrtcGetNumSupportedArchs) num_archs = nullptr;
  decltype(&::nvrtcGetSupportedArchs) archs = nullptr;
  decltype(&::nvrtcCreateProgram) create = nullptr;
  decltype(&::nvrtcDestroyProgram) destroy = nullptr;
  decltype(&::nvrtcAddNameExpression) add_name = nullptr;
  decltype(&::nvrtcCompileProgram) compile = nullptr;
  decltype(&::nvrtcGetLoweredName) lowered_name = nullptr;
  decltype(&::nvrtcGetProgramLogSize) log_size = nullptr;
  decltype(&::nvrtcGetProgramLog) log = nullptr;
  decltype(&::nvrtcGetCUBINSize) cubin_size = nullptr;
  decltype(&::nvrtcGetCUBIN) cubin = nullptr;
  decltype(&::nvrtcGetPTXSize) ptx_size = nullptr;
  decltype(&::nvrtcGetPTX) ptx = nullptr;

  int newest_arch = 0;         // newest architecture that can be compiled for, such as 120
  std::string include_folder;  // the toolkit's headers; empty when they are not installed
  std::string version_text;    // "13.0"
};

// Result of one NVRTC run.
struct NvrtcResult {
  bool ok = false;
  std::string object;  // a cubin, or PTX for a virtual architecture
  std::string log;
  std::vector<std::string> lowered_names;  // lowered name expressions, in their order
};

// Origin of a source's <cooperative_groups.h>.
enum class GroupsFrom { kOurs, kToolkit };

// Compiles `source` as kernel.cu with our stub headers. A source that does not compile is a result
// with ok = false; the status is for NVRTC's own failures.
absl::StatusOr<NvrtcResult> RunNvrtc(const Nvrtc& nvrtc, const std::string& source,
                                     const std::vector<std::string>& options,
                                     const std::vector<std::string>& name_expressions,
                                     GroupsFrom groups = GroupsFrom::kOurs);

// Like RunNvrtc. If a source uses a macro or type of math.h, float.h, limits.h or stdint.h without
// an #include, it is compiled again with these headers: nvcc includes them implicitly, and CPU
// devices have their names. A source's own declarations of such names win.
absl::StatusOr<NvrtcResult> RunLikeNvcc(const Nvrtc& nvrtc, const std::string& source,
                                        std::vector<std::string> options,
                                        const std::vector<std::string>& name_expressions,
                                        GroupsFrom groups = GroupsFrom::kOurs);

}  // namespace stride::cuda
