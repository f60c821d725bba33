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

std::vector<std::string> DriverFolders() {
  std::vector<std::string> folders = {"/usr/local/nvidia/lib", "/usr/local/nvidia/lib64"};
  // Targets of the links in the libraries' own folders.
  for (const char* pattern :
       {"/usr/lib/libcuda.so.1", "/usr/lib64/libcuda.so.1", "/usr/lib/*-linux-gnu/libcuda.so.1"}) {
    for (const std::string& link : Glob(pattern)) {
      char* file = realpath(link.c_str(), nullptr);
      if (file == nullptr) continue;
      std::string path(file);
      std::free(file);
      folders.push_back(path.substr(0, path.rfind('/')));
    }
  }
  return folders;
}

std::vector<std::string> DeviceFiles() { return Glob("/dev/nvidia*"); }

}  // namespace stride::cuda
