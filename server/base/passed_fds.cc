#include "server/base/passed_fds.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace stride {
namespace {

constexpr int kFirst = 3;

}  // namespace

std::vector<NamedFd> TakePassedFds() {
  std::vector<NamedFd> taken;
  const char* pid = std::getenv("LISTEN_PID");
  const char* count = std::getenv("LISTEN_FDS");
  const char* list = std::getenv("LISTEN_FDNAMES");
  int num_fds = 0;
  bool ours = pid != nullptr && count != nullptr && std::to_string(getpid()) == pid &&
              absl::SimpleAtoi(count, &num_fds);
  std::vector<std::string> names;
  if (list != nullptr) names = absl::StrSplit(list, ':');
  for (int i = 0; ours && i < num_fds; ++i) {
    fcntl(kFirst + i, F_SETFD, FD_CLOEXEC);
    bool named = static_cast<size_t>(i) < names.size();
    taken.push_back({named ? names[i] : "", UniqueFd(kFirst + i)});
  }
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) unsetenv(name);
  return taken;
}

}  // namespace stride
