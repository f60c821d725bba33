#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/base/unique_fd.h"

namespace stride::api {

// Memory that clients have mapped. Each piece is pinned by a socket pair: the client gets one end
// with the memory's descriptor, and the memory is released when the client shuts that end down or
// closes it, as a process also does when it dies. One thread waits for all. Thread-safe.
class Pins {
 public:
  // Runs on the thread of Pins and must not block. `end` is the daemon's end: it closes when its
  // last copy is destroyed, which shows the client that the memory is released.
  using Release = std::function<void(const std::string& memory, std::shared_ptr<const void> end)>;

  explicit Pins(Release release);
  ~Pins() { Stop(); }

  // Releases nothing from now on: memory that is pinned when the daemon ends stays valid for its
  // clients.
  void Stop();

  // Pins the memory; returns the client's end. After an error nothing is released.
  absl::StatusOr<UniqueFd> Add(const std::string& memory);
  // Closes the pin of memory that was deleted, without a release.
  void Drop(std::string_view memory);
  size_t size();

 private:
  struct Pin {
    std::string memory;
    std::shared_ptr<const UniqueFd> end;
  };

  void Run();

  const Release release_;
  const UniqueFd events_;  // epoll; entries are ids of pins
  const UniqueFd stop_;
  absl::Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Pin> pins_ ABSL_GUARDED_BY(mutex_);  // by id
  std::thread thread_;
};

}  // namespace stride::api
