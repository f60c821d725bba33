#include "server/base/descriptors.h"

#include <dirent.h>
#include <sys/stat.h>

#include <memory>

namespace stride {

int64_t OpenDescriptors() {
  constexpr char kFolder[] = "/proc/self/fd";
  struct stat info = {};
  if (stat(kFolder, &info) == 0 && info.st_size > 0) return info.st_size;
  std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(kFolder), &closedir);
  if (folder == nullptr) return 0;
  int64_t count = -3;  // itself, "." and ".."
  while (readdir(folder.get()) != nullptr) ++count;
  return count;
}

}  // namespace stride
