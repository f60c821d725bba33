#include "cpucuda/runtime/module.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace stride::cpucuda {
namespace {

absl::Status Errno(const char* what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> Module::Load(int fd) {
  // The loader identifies a known path with the object that it has loaded, and descriptor numbers
  // repeat. So each path gets steps that change nothing (a number in binary).
  static std::atomic<uint64_t> serial{0};
  std::string path = "/proc/self/fd/";
  for (uint64_t rest = serial++; rest != 0; rest >>= 1) path += (rest & 1) != 0 ? "./" : "/";
  absl::StrAppend(&path, fd);
  // A sealed worker opens no path, it gets a duplicate of the descriptor instead, whose offset is
  // this one's.
  lseek(fd, 0, SEEK_SET);
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return absl::InternalError(
        absl::StrCat("loading a compiled object: ", why == nullptr ? "unknown" : why));
  }
  return std::unique_ptr<Module>(new Module(handle));
}

absl::StatusOr<std::unique_ptr<Module>> Module::LoadBytes(const std::string& object) {
  int fd = memfd_create("stride-module", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return Errno("memfd_create");
  absl::Cleanup close_fd = [fd] { close(fd); };
  for (size_t at = 0; at < object.size();) {
    ssize_t done = write(fd, object.data() + at, object.size() - at);
    if (done <= 0) return Errno("writing a compiled object");
    at += done;
  }
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return Errno("sealing");
  return Load(fd);
}

Module::~Module() { dlclose(handle_); }

void* Module::Symbol(const std::string& name) const { return dlsym(handle_, name.c_str()); }

}  // namespace stride::cpucuda
