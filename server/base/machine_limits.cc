#include "server/base/machine_limits.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

namespace stride {
namespace {

constexpr char kCgroupRoot[] = "/sys/fs/cgroup";

// The folder of this process in the unified cgroup hierarchy, "" for its root.
std::string CgroupFolder() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.substr(0, 3) == "0::") return line.size() > 4 ? line.substr(3) : "";
  }
  return "";
}

// Calls `visit` with the content of `name` in this process's cgroup and in each cgroup above it,
// since all of them apply.
template <typename Visit>
void ForEachLimit(const std::string& name, const Visit& visit) {
  std::string folder = CgroupFolder();
  for (;;) {
    std::ifstream file(kCgroupRoot + folder + "/" + name);
    std::string text;
    if (std::getline(file, text)) visit(text);
    if (folder.empty()) return;
    folder.resize(folder.rfind('/'));
  }
}

}  // namespace

int AvailableThreads() {
  cpu_set_t set;
  int threads = sched_getaffinity(0, sizeof(set), &set) == 0
                    ? CPU_COUNT(&set)
                    : static_cast<int>(std::thread::hardware_concurrency());
  ForEachLimit("cpu.max", [&](const std::string& text) {  // "max 100000", or quota and period in us
    std::istringstream stream(text);
    double quota, period;
    if (stream >> quota >> period && period > 0) {
      threads = std::min(threads, std::max(1, static_cast<int>(quota / period + 0.5)));
    }
  });
  return std::max(1, threads);
}

int64_t AvailableMemoryBytes() {
  int64_t bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  ForEachLimit("memory.max", [&](const std::string& text) {
    std::istringstream stream(text);
    int64_t limit;
    if (stream >> limit) bytes = std::min(bytes, limit);
  });
  return bytes;
}

int64_t MostProcesses() {
  int64_t most = 0;
  const auto bound = [&most](int64_t limit) {
    if (limit > 0) most = most == 0 ? limit : std::min(most, limit);
  };
  rlimit of_user{};
  // The limit does not apply to a process with the right to exceed it.
  if (getuid() != 0 && getrlimit(RLIMIT_NPROC, &of_user) == 0 && of_user.rlim_cur != RLIM_INFINITY)
    bound(static_cast<int64_t>(of_user.rlim_cur));
  ForEachLimit("pids.max", [&](const std::string& text) {  // "max", or a number
    std::istringstream stream(text);
    int64_t limit;
    if (stream >> limit) bound(limit);
  });
  for (const char* name : {"/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max"}) {
    std::ifstream file(name);
    int64_t limit;
    if (file >> limit) bound(limit);
  }
  return most;
}

}  // namespace stride
