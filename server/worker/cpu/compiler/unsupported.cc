#include "server/worker/cpu/compiler/unsupported.h"

namespace stride::cpu {
namespace {

struct Sign {
  std::string_view text;  // found in a diagnostic
  std::string_view feature;
};

// The quotes keep a user's own `my_texture` from matching.
constexpr Sign kSigns[] = {
    {"cudaConfigureCall", "dynamic parallelism (a launch inside a kernel)"},
    {"__cudaPushCallConfiguration", "dynamic parallelism (a launch inside a kernel)"},
    {"cudaLaunchDevice", "dynamic parallelism (a launch inside a kernel)"},
    {"'cudaTextureObject_t'", "textures and surfaces"},
    {"'cudaSurfaceObject_t'", "textures and surfaces"},
    {"'texture'", "textures and surfaces"},
    {"'surface'", "textures and surfaces"},
    {"'tex1D", "textures and surfaces"},
    {"'tex2D", "textures and surfaces"},
    {"'tex3D", "textures and surfaces"},
    {"'surf2D", "textures and surfaces"},
    {"'this_multi_grid'", "grids over several devices"},
    {"'multi_grid_group'", "grids over several devices"},
    {"'this_cluster'", "thread block clusters"},
    {"'cluster_group'", "thread block clusters"},
    {"'wmma'", "tensor core matrices (wmma)"},
    {"'mma.h' file not found", "tensor core matrices (wmma)"},
    {"'cuda_fp8.h' file not found", "fp8 types"},
    {"'cub/", "the CUB library"},
    {"'thrust/", "the Thrust library"},
    {"'cuda/", "the libcu++ headers (cuda/...)"},
    {"'curand", "the cuRAND device library"},
    {" in asm", "inline PTX assembly"},
    {"asm operand", "inline PTX assembly"},
    {"asm clobber", "inline PTX assembly"},
};

}  // namespace

std::string UnsupportedFeature(std::string_view diagnostic) {
  for (const Sign& sign : kSigns) {
    if (diagnostic.find(sign.text) != std::string_view::npos) return std::string(sign.feature);
  }
  return "";
}

}  // namespace stride::cpu
