#include "server/broker/spawner.h"

#include <unistd.h>

#include <optional>
#include <utility>

#include "absl/strings/match.h"

namespace stride::broker {
namespace {

// Names, and prefixes that end in '_'.
constexpr const char* kPassedVariables[] = {"PATH=",
                                            "HOME=",
                                            "TMPDIR=",
                                            "LANG=",
                                            "LC_",
                                            "TZ=",
                                            "CUDA_",
                                            "NVIDIA_",
                                            "OPENBLAS_CORETYPE=",
                                            "LD_LIBRARY_PATH=",
                                            "STRIDE_WORKER_",
                                            "ASAN_OPTIONS=",
                                            "LSAN_OPTIONS=",
                                            "TSAN_OPTIONS=",
                                            "UBSAN_OPTIONS="};

}  // namespace

struct Spawner::Job {
  SpawnRequest request;
  std::optional<absl::StatusOr<ChildProcess>> result;
};

Spawner::Spawner(std::vector<std::string> environment)
    : environment_(std::move(environment)), thread_([this] { Run(); }) {}

Spawner::~Spawner() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

absl::StatusOr<ChildProcess> Spawner::Spawn(SpawnRequest request) {
  Job job{std::move(request), std::nullopt};
  job.request.environment = environment_;
  absl::MutexLock lock(&mutex_);
  jobs_.push_back(&job);
  mutex_.Await(absl::Condition(
      +[](Job* job) { return job->result.has_value(); }, &job));
  return *std::move(job.result);
}

void Spawner::Run() {
  absl::MutexLock lock(&mutex_);
  auto ready = [this]()
                   ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !jobs_.empty(); };
  for (;;) {
    mutex_.Await(absl::Condition(&ready));
    if (jobs_.empty()) return;
    Job* job = jobs_.front();
    jobs_.erase(jobs_.begin());
    mutex_.Unlock();
    auto result = ChildProcess::Start(job->request);
    mutex_.Lock();
    job->result = std::move(result);
  }
}

std::vector<std::string> WorkerEnvironment() {
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    for (const char* name : kPassedVariables) {
      if (absl::StartsWith(*variable, name)) result.emplace_back(*variable);
    }
  }
  // BLAS would start a thread for each core before main, and a process may enter a user namespace
  // only while it has one thread. The CPU device sets its number of threads later.
  result.push_back("OPENBLAS_NUM_THREADS=1");
  // OpenBLAS's threads spin for 2^22 cycles before they sleep, not 2^26. The default takes 20 ms at
  // every start and after every call, and the tenant is charged for it.
  result.push_back("OPENBLAS_THREAD_TIMEOUT=22");
  return result;
}

}  // namespace stride::broker
