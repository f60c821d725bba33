#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/worker/cuda/compile/cubin_info.h"
#include "server/worker/cuda/compile/nvrtc.h"
#include "server/worker/runtime/code_compiler.h"

namespace stride::cuda {

// Compiles for NVIDIA devices with NVRTC; needs no device and no driver. Without NVRTC, PTX and
// binaries still pass, and other requests return UNAVAILABLE.
class CudaCompiler : public worker::CodeCompiler {
 public:
  // Opens NVRTC and loads all its libraries before the first request.
  CudaCompiler();

  absl::StatusOr<worker::CompiledCode> Compile(const std::string& target,
                                               const wire::Code& code) override;

  // The compiler and its version, for cache keys.
  static std::string Toolchain();

 private:
  absl::StatusOr<worker::CompiledCode> CompileEmitted(int arch, const wire::Code& code);
  absl::StatusOr<worker::CompiledCode> CompileSource(int arch, const wire::Source& source);
  // A client's source and its compilation options.
  struct Job {
    std::string text;
    std::vector<std::string> options;
    std::vector<std::string> globals;
    GroupsFrom groups = GroupsFrom::kOurs;
  };
  absl::StatusOr<NvrtcResult> RunJob(const Job& job, const std::string& text,
                                     const std::vector<std::string>& names);
  absl::StatusOr<worker::CompiledCode> CompileJob(const Job& job,
                                                  const std::vector<std::string>& entries);
  absl::StatusOr<worker::CompiledCode> CompileEntries(const Job& job,
                                                      const std::vector<std::string>& entries);
  // The error for entries or globals that did not compile: a fault of the text itself, a name that
  // it lacks, or the fault in `failed`.
  absl::Status WrongEntries(const Job& job, const std::vector<std::string>& entries,
                            const NvrtcResult& failed);
  absl::StatusOr<worker::CompiledCode> CompileAll(const Job& job);
  absl::StatusOr<worker::CompiledCode> TakePrebuilt(const wire::Source& source);

  absl::StatusOr<std::unique_ptr<const Nvrtc>> nvrtc_;
};

}  // namespace stride::cuda
