#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/broker/child_process.h"

namespace stride::broker {

// One thread that starts every process of the broker. Workers ask the kernel to kill them when
// their parent dies, and the kernel counts the thread that started them as the parent: a request's
// own thread might end long before. Thread-safe. Destroy it after every process it started: they
// die with it.
class Spawner {
 public:
  // `environment` is given to every process.
  explicit Spawner(std::vector<std::string> environment);
  ~Spawner();

  // Blocks for the start (under a millisecond). The request's environment is replaced.
  absl::StatusOr<ChildProcess> Spawn(SpawnRequest request);

 private:
  struct Job;
  void Run();

  const std::vector<std::string> environment_;
  absl::Mutex mutex_;
  std::vector<Job*> jobs_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// What of our own environment a worker gets: it runs clients' code, and the rest may hold secrets.
std::vector<std::string> WorkerEnvironment();

}  // namespace stride::broker
