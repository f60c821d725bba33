#include "cpucuda/compiler/unsupported.h"

namespace stride::cpucuda {
namespace {

struct Sign {
  std::string_view text;  // found in a diagnostic
  std::string_view feature;
};

// The quotes keep a user's own `my_texture` from matching.
constexpr Sign kSigns[] = {
    {"reference to __host__ function 'cudaConfigureCall'",
     "dynamic parallelism (a launch inside a kernel)"},
    {"cudaLaunchDevice", "dynamic parallelism (a launch inside a kernel)"},
    {"'cudaSurfaceObject_t'", "surfaces"},
    {"'surface'", "surfaces"},
    {"'surf1D", "surfaces"},
    {"'surf2D", "surfaces"},
    {"'surf3D", "surfaces"},
    {"'texture'", "texture references, which CUDA 12 removed; take a cudaTextureObject_t"},
    {"'cudaReadModeElementType'",
     "texture references, which CUDA 12 removed; take a cudaTextureObject_t"},
    {"'cudaReadModeNormalizedFloat'",
     "texture references, which CUDA 12 removed; take a cudaTextureObject_t"},
    {"'tex1DLayered", "layered textures"},
    {"'tex2DLayered", "layered textures"},
    {"'texCubemap", "cube maps"},
    {"'this_multi_grid'", "grids over several devices"},
    {"'multi_grid_group'", "grids over several devices"},
    {"'this_cluster'", "thread block clusters"},
    {"'cluster_group'", "thread block clusters"},
    {"'wmma'", "tensor core matrices (wmma)"},
    {"'mma.h' file not found", "tensor core matrices (wmma)"},
    {"'cuda_fp8.h' file not found", "fp8 types"},
    {"no member named 'Device",
     "device-wide algorithms of CUB in kernels; use Stride's own operations"},
    {"'cub/", "such header of the CUB library"},
    {"in namespace 'cub'", "such part of the CUB library"},
    {"'thrust/", "Thrust library"},
    {"'cuda/", "such libcu++ header (cuda/...)"},
    {"in namespace 'cuda'", "such part of libcu++ (cuda::...)"},
    {"in namespace 'cuda::std'", "such part of libcu++ (cuda::std::...)"},
    {"'curandStateMtgp32", "Mersenne Twister (Mtgp32) in cuRAND's device library"},
    {"'curand_discrete'", "discrete distributions in cuRAND's device library"},
    {"'curand", "such part of cuRAND's device library"},
    {"in namespace 'cooperative_groups'", "such part of cooperative groups"},
    {"'cooperative_groups/", "such header of cooperative groups"},
    {" in asm", "inline PTX with these operands"},
    {"asm operand", "inline PTX with these operands"},
    {"asm clobber", "inline PTX with these operands"},
};

// Words of host code. A header of the standard library that only host code can use counts, too.
constexpr std::string_view kHostSigns[] = {
    "kernel call to non-global function",
    "use of undeclared identifier 'cuda",
    "unknown type name 'cuda",
    "'vector' file not found",
    "'string' file not found",
    "'map' file not found",
    "'memory' file not found",
    "'chrono' file not found",
    "'random' file not found",
    "'fstream' file not found",
    "'sstream' file not found",
    "'iomanip' file not found",
    "'stdexcept' file not found",
    "'sys/time.h' file not found",
    "'omp.h' file not found",
    "member named 'cout' in namespace 'std'",
    "member named 'cerr' in namespace 'std'",
    "member named 'vector' in namespace 'std'",
    "member named 'string' in namespace 'std'",
};

}  // namespace

std::string UnsupportedFeature(std::string_view diagnostic) {
  for (const Sign& sign : kSigns) {
    if (diagnostic.find(sign.text) != std::string_view::npos) return std::string(sign.feature);
  }
  return "";
}

bool LooksLikeHostCode(std::string_view diagnostic) {
  for (std::string_view sign : kHostSigns) {
    if (diagnostic.find(sign) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace stride::cpucuda
