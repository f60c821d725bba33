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

// One thread that starts all processes of the broker. Workers ask the kernel to kill them when
// their parent dies, and the kernel takes the thread that started them as the parent; a request's
// thread might end too early. Thread-safe. Destroy the spawner after its processes, since they die
// with it.
class Spawner {
 public:
  // `environment` is passed to every process.
  explicit Spawner(std::vector<std::string> environment);
  ~Spawner();

  // Blocks for the start (under a millisecond). Replaces the request's environment.
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

// The part of the daemon's environment that workers get: they run clients' code, and other
// variables may hold secrets.
std::vector<std::string> WorkerEnvironment();

}  // namespace stride::broker
