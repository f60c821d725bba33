#include "server/worker/cuda/sandbox_paths.h"

#include <glob.h>

#include <cstdlib>

namespace stride::cuda {
namespace {

std::vector<std::string> Glob(const char* pattern) {
  std::vector<std::string> paths;
  glob_t found;
  if (glob(pattern, 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

}  // namespace

std::vector<std::string> ToolkitRoots() {
  std::vector<std::string> roots = Glob("/usr/local/cuda*");
  if (const char* home = std::getenv("CUDA_HOME")) roots.push_back(home);
  // Distributions' own packages.
  for (const char* folder : {"/usr/include", "/usr/share/cuda"}) roots.push_back(folder);
  return roots;
}

std::vector<std::string> DeviceFiles() { return Glob("/dev/nvidia*"); }

}  // namespace stride::cuda
