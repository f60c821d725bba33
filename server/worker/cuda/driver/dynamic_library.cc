#include "server/worker/cuda/driver/dynamic_library.h"

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace stride::cuda {
namespace {

// Folders of toolkits, the newest version first.
std::vector<std::string> ToolkitFolders() {
  std::vector<std::string> folders;
  if (const char* home = std::getenv("CUDA_HOME")) folders.push_back(absl::StrCat(home, "/lib64"));
  folders.push_back("/usr/local/cuda/lib64");
  glob_t found;
  if (glob("/usr/local/cuda-*/lib64", 0, nullptr, &found) == 0) {
    for (size_t i = found.gl_pathc; i-- > 0;) folders.push_back(found.gl_pathv[i]);
  }
  globfree(&found);
  return folders;
}

}  // namespace

absl::StatusOr<DynamicLibrary> DynamicLibrary::Open(std::string_view what,
                                                    std::initializer_list<const char*> names) {
  constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;
  for (const char* name : names) {
    if (void* handle = dlopen(name, kFlags)) return DynamicLibrary(handle);
  }
  for (const std::string& folder : ToolkitFolders()) {
    for (const char* name : names) {
      if (void* handle = dlopen(absl::StrCat(folder, "/", name).c_str(), kFlags)) {
        return DynamicLibrary(handle);
      }
    }
  }
  return absl::UnavailableError(
      absl::StrCat("no ", std::string(what), " on this machine (", *names.begin(), ")"));
}

void* DynamicLibrary::Find(const char* symbol) const { return dlsym(handle_, symbol); }

std::string DynamicLibrary::PathOf(const void* symbol) {
  Dl_info info;
  if (dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return "";
  return info.dli_fname;
}

}  // namespace stride::cuda
