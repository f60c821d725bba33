#include "server/worker/cuda/compile/missing_header.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace stride::cuda {
namespace {

struct Package {
  const char* prefix;  // prefix of a header's name
  const char* name;    // name of the toolkit's package, without its version
};
constexpr Package kPackages[] = {
    {"cub/", "cuda-cccl"},
    {"thrust/", "cuda-cccl"},
    {"cuda/", "cuda-cccl"},
    {"nv/", "cuda-cccl"},
    {"curand", "libcurand-dev"},
    {"cooperative_groups", "cuda-cudart-dev"},
    {"cuComplex.h", "cuda-cudart-dev"},
    {"cuda_fp", "cuda-cudart-dev"},
    {"cuda_bf16", "cuda-cudart-dev"},
    {"cuda_pipeline", "cuda-cudart-dev"},
    {"cuda_awbarrier", "cuda-cudart-dev"},
    {"mma.h", "cuda-crt"},
    {"crt/", "cuda-crt"},
};

// The header that could not be opened; empty for other failures.
absl::string_view MissingName(absl::string_view log) {
  constexpr absl::string_view kSign = "cannot open source file \"";
  size_t at = log.find(kSign);
  if (at == absl::string_view::npos) return "";
  absl::string_view rest = log.substr(at + kSign.size());
  return rest.substr(0, rest.find('"'));
}

}  // namespace

std::optional<absl::Status> KnownRefusal(const std::string& log) {
  const absl::string_view header = MissingName(log);
  for (const Package& package : kPackages) {
    if (header.empty() || !absl::StartsWith(header, package.prefix)) continue;
    return absl::UnimplementedError(
        absl::StrCat("the CUDA compiler of this machine has no header `", header,
                     "`: it belongs to the CUDA toolkit (package ", package.name,
                     "), which must be installed next to NVRTC or as /usr/local/cuda\n", log));
  }
  if (absl::StrContains(log, "host functions are not allowed in JIT mode") ||
      absl::StrContains(log, "__host__ function is not allowed in JIT mode")) {
    return absl::InvalidArgumentError(
        absl::StrCat("the source has host code; give the kernels and device functions alone, "
                     "without main(), <<<>>> and calls of the CUDA runtime, or mark what they call "
                     "__device__ (or compile with -default-device)\n",
                     log));
  }
  if (absl::StrContains(log, "device-side kernel launch could not be processed")) {
    return absl::UnimplementedError(absl::StrCat(
        "the CUDA device has no dynamic parallelism (a launch inside a kernel)\n", log));
  }
  return std::nullopt;
}

}  // namespace stride::cuda
