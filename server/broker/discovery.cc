#include "server/broker/discovery.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/environment.h"
#include "server/base/executable_stamp.h"
#include "server/base/system_error.h"
#include "server/wire/exit_code.h"

namespace stride::broker {
namespace {

constexpr std::string_view kPrefix = "stride-worker-";
constexpr size_t kMaxListBytes = 1 << 20;

struct Executable {
  std::string kind;
  std::string path;
};

absl::StatusOr<std::vector<Executable>> FindExecutables(const std::string& folder) {
  std::error_code error;
  std::vector<Executable> found;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::string name = it->path().filename();
    if (name.substr(0, kPrefix.size()) != kPrefix) continue;
    std::error_code ignored;
    if (!it->is_regular_file(ignored) || access(it->path().c_str(), X_OK) != 0) continue;
    found.push_back({name.substr(kPrefix.size()), it->path()});
  }
  if (error) {
    return absl::NotFoundError(absl::StrCat(
        "the folder of worker executables cannot be read: ", folder, ": ", error.message()));
  }
  // CUDA first: where both can run a job, earlier devices are the better guess.
  std::sort(found.begin(), found.end(), [](const Executable& a, const Executable& b) {
    return std::make_pair(a.kind != "cuda", a.kind) < std::make_pair(b.kind != "cuda", b.kind);
  });
  return found;
}

absl::StatusOr<std::string> ReadAll(int fd, SteadyTime deadline) {
  std::string text;
  char buffer[4096];
  for (;;) {
    int64_t left = absl::ToInt64Milliseconds(deadline - Now());
    pollfd entry{fd, POLLIN, 0};
    if (left <= 0 || poll(&entry, 1, static_cast<int>(left)) == 0) {
      return absl::DeadlineExceededError("it did not list its devices in time");
    }
    ssize_t size = read(fd, buffer, sizeof(buffer));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return absl::ErrnoToStatus(errno, "reading its list");
    if (size == 0) return text;
    text.append(buffer, size);
    if (text.size() > kMaxListBytes) return absl::InternalError("its list is too long");
  }
}

absl::StatusOr<wire::DeviceList> RunList(const Executable& executable, absl::Duration timeout,
                                         const SandboxPolicy& sandbox, Spawner* spawner) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "making a pipe");
  UniqueFd output(ends[0]), input(ends[1]);
  SpawnRequest request;
  request.executable = executable.path;
  request.arguments = {"--list"};
  for (std::string& argument : SandboxArguments(sandbox)) {
    request.arguments.push_back(std::move(argument));
  }
  request.standard_output = input.get();
  SteadyTime deadline = Now() + timeout;
  auto child = spawner->Spawn(std::move(request));
  if (!child.ok()) return child.status();
  input.Reset();
  absl::StatusOr<std::string> text = ReadAll(output.get(), deadline);
  if (!text.ok()) return text.status();
  if (!child->WaitEnded(deadline - Now())) {
    return absl::DeadlineExceededError("it did not exit after listing its devices");
  }
  ChildExit exit = child->Reap();
  if (exit.by_signal) return absl::InternalError(absl::StrCat("it died of signal ", exit.code));
  if (exit.code == wire::kNoSandboxExit) {
    return absl::FailedPreconditionError(
        "it cannot enter the sandbox here; its message above names the refused layer");
  }
  if (exit.code != 0) return absl::InternalError(absl::StrCat("it exited with code ", exit.code));
  wire::DeviceList list;
  if (!list.ParseFromString(*text)) return absl::InternalError("its output is no device list");
  return list;
}

// All executables run concurrently: a driver takes some tenths of a second to initialize.
std::vector<absl::StatusOr<wire::DeviceList>> RunLists(const std::vector<Executable>& executables,
                                                       absl::Duration timeout,
                                                       const SandboxPolicy& sandbox,
                                                       Spawner* spawner) {
  std::vector<absl::StatusOr<wire::DeviceList>> lists(executables.size());
  auto run = [&](size_t i) { lists[i] = RunList(executables[i], timeout, sandbox, spawner); };
  std::vector<std::thread> threads;
  for (size_t i = 0; i + 1 < executables.size(); ++i) {
    absl::StatusOr<std::thread> thread = StartThread([&run, i] { run(i); });
    if (thread.ok()) {
      threads.push_back(*std::move(thread));
    } else {
      run(i);
    }
  }
  if (!executables.empty()) run(executables.size() - 1);
  for (std::thread& thread : threads) thread.join();
  return lists;
}

}  // namespace

absl::StatusOr<Discovery> Discover(const std::string& worker_directory, absl::Duration timeout,
                                   const SandboxPolicy& sandbox, Spawner* spawner) {
  auto executables = FindExecutables(worker_directory);
  if (!executables.ok()) return executables.status();
  Discovery found;
  std::set<std::string> ids;
  auto lists = RunLists(*executables, timeout, sandbox, spawner);
  for (size_t i = 0; i < lists.size(); ++i) {
    const Executable& executable = (*executables)[i];
    std::string name = absl::StrCat("stride-worker-", executable.kind);
    absl::StatusOr<wire::DeviceList>& list = lists[i];
    if (!list.ok()) {
      found.sandbox_refused |= absl::IsFailedPrecondition(list.status());
      found.notes.push_back(absl::StrCat(name, ": not used: ", list.status().message()));
      continue;
    }
    int count = 0;
    for (const wire::DeviceDescription& device : list->devices()) {
      if (device.kind() != executable.kind || device.id().empty() ||
          !ids.insert(device.id()).second) {
        found.notes.push_back(absl::StrCat(name, ": a device left out: its kind or id is wrong"));
        continue;
      }
      found.devices.push_back({device, executable.path});
      ++count;
    }
    for (const wire::Link& link : list->links()) found.links.push_back(link);
    found.executables[executable.kind] = executable.path;
    found.toolchains[executable.kind] = list->toolchain();
    found.notes.push_back(count > 0
                              ? absl::StrCat(name, ": ", count, count == 1 ? " device" : " devices")
                              : absl::StrCat(name, ": no device: ", list->reason()));
    if (count > 0)
      found.notes.push_back(absl::StrCat(name, ": ", DescribeSandbox(list->sandbox())));
  }
  return found;
}

std::string ToolchainOf(const Discovery& found, const std::string& kind) {
  return absl::StrCat(found.toolchains.at(kind), " ", ExecutableStamp(found.executables.at(kind)));
}

std::vector<FoundDevice> MakeCpuDevices(const FoundDevice& machine,
                                        const std::vector<int>& num_threads) {
  std::vector<FoundDevice> devices;
  for (size_t i = 0; i < num_threads.size(); ++i) {
    FoundDevice device = machine;
    device.num_threads = num_threads[i];
    device.description.set_id(absl::StrCat("cpu:", i));
    device.description.set_index(static_cast<int>(i));
    if (num_threads[i] > 0) device.description.set_num_compute_units(num_threads[i]);
    device.description.set_memory_bytes(machine.description.memory_bytes() /
                                        static_cast<int64_t>(num_threads.size()));
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace stride::broker
