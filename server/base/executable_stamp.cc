#include "server/base/executable_stamp.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"

namespace stride {

std::string ExecutableStamp() {
  struct stat info = {};
  stat("/proc/self/exe", &info);
  return absl::StrCat(info.st_size, " ", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec);
}

}  // namespace stride
