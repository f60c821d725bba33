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
// binaries still pass and all else answers UNAVAILABLE.
class CudaCompiler : public worker::CodeCompiler {
 public:
  // Opens NVRTC and compiles an empty kernel, so that everything it loads is loaded before the
  // first request.
  CudaCompiler();

  absl::StatusOr<worker::CompiledCode> Compile(const std::string& target,
                                               const wire::Code& code) override;

  // Names the compiler and its version, for cache keys.
  static std::string Toolchain();

 private:
  absl::StatusOr<worker::CompiledCode> CompileEmitted(int arch, const wire::Code& code);
  absl::StatusOr<worker::CompiledCode> CompileSource(int arch, const wire::Source& source);
  absl::StatusOr<worker::CompiledCode> CompileEntries(const std::string& text,
                                                      const std::vector<std::string>& options,
                                                      const std::vector<std::string>& entries);
  // Why these entries of `text` did not compile: the text itself, a name that it lacks, or what
  // `failed` tells.
  absl::Status WrongEntries(const std::string& text, const std::vector<std::string>& options,
                            const std::vector<std::string>& entries, const NvrtcResult& failed);
  absl::StatusOr<worker::CompiledCode> CompileAll(const std::string& text,
                                                  const std::vector<std::string>& options);
  absl::StatusOr<worker::CompiledCode> TakePrebuilt(const wire::Source& source);

  absl::StatusOr<std::unique_ptr<const Nvrtc>> nvrtc_;
};

}  // namespace stride::cuda
