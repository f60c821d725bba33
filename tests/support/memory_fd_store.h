#pragma once

#include <fcntl.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "server/base/unique_fd.h"
#include "server/fd_store/fd_store.h"

namespace stride::testing {

// Keeps descriptors in this process, for consecutive engines.
class MemoryFdStore : public fd_store::FdStore {
 public:
  using Files = std::map<std::string, UniqueFd>;

  bool keeps() const override { return true; }
  absl::Status Store(const std::string& name, int fd) override {
    UniqueFd copy = CopyOf(fd);
    absl::MutexLock lock(&mutex_);
    files_[name] = std::move(copy);
    return absl::OkStatus();
  }
  void Remove(const std::string& name) override {
    absl::MutexLock lock(&mutex_);
    files_.erase(name);
  }
  std::vector<NamedFd> TakeAll() override {
    std::vector<NamedFd> all;
    for (auto& [name, fd] : Copy()) all.push_back({name, std::move(fd)});
    return all;
  }

  Files Copy() {
    absl::MutexLock lock(&mutex_);
    Files copy;
    for (const auto& [name, fd] : files_) copy[name] = CopyOf(fd.get());
    return copy;
  }

 private:
  static UniqueFd CopyOf(int fd) { return UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

  absl::Mutex mutex_;
  Files files_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace stride::testing
