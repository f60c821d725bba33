// Costs of worker processes on the daemon's side: a start, a task, a copy. Usage: worker_bench
// FOLDER_OF_WORKERS
#include <benchmark/benchmark.h>

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "absl/synchronization/mutex.h"
#include "server/base/memory_file.h"
#include "server/broker/broker.h"

namespace stride::broker {
namespace {

std::unique_ptr<Broker> broker, bare_broker;

absl::StatusOr<std::unique_ptr<Broker>> MakeBroker(const char* folder, SandboxPolicy::Mode mode) {
  BrokerOptions options;
  options.worker_directory = folder;
  options.num_spares = 0;
  options.cpu_devices = {0};
  options.use_cuda = false;
  options.sandbox.mode = mode;
  return Broker::Create(std::move(options));
}

// Counts completions.
struct Counter {
  void Add(int64_t n) {
    absl::MutexLock lock(&mutex);
    count += n;
  }
  void WaitFor(int64_t wanted) {
    absl::MutexLock lock(&mutex);
    auto there = [&] { return count >= wanted; };
    mutex.Await(absl::Condition(&there));
  }
  absl::Mutex mutex;
  int64_t count = 0;
};

struct Subject {
  std::shared_ptr<Worker> worker;
  std::shared_ptr<Counter> tasks = std::make_shared<Counter>();
  uint64_t sequence = 0;

  Subject() {
    auto started = broker->StartWorker(0);
    if (!started.ok()) std::abort();
    worker = *started;
    worker->Adopt(
        {.tasks_done = [t = tasks](auto results) { t->Add(results.size()); }, .died = nullptr});
    UniqueFd arena = *CreateMemoryFile("arena", 64 << 20);
    if (!worker->MapArena(1, 64 << 20, arena.get()).ok()) std::abort();
  }
  void Submit(int num_tasks) {
    wire::TaskPacket packet;
    wire::Task task;
    task.mutable_zero_fill()->set_arena(1);
    task.mutable_zero_fill()->set_size(64);
    for (int i = 0; i < num_tasks; ++i) {
      task.set_sequence(++sequence);
      packet.Add(task);
    }
    if (!worker->Submit(packet).ok()) std::abort();
  }
};

// With no spares kept: spawn, Start, Started; in the sandbox (1) and without (0). On a busy
// machine:
// --benchmark_repetitions=15 --benchmark_enable_random_interleaving=true, and look at the median.
void BM_SpawnToReady(benchmark::State& state) {
  Broker& starter = state.range(0) == 1 ? *broker : *bare_broker;
  for (auto _ : state) {
    auto worker = starter.StartWorker(0);
    if (!worker.ok()) return state.SkipWithError("no worker");
    state.PauseTiming();
    const pid_t pid = (*worker)->pid();
    worker->reset();
    while (kill(pid, 0) == 0) usleep(200);
    state.ResumeTiming();
  }
}
BENCHMARK(BM_SpawnToReady)
    ->ArgName("sandbox")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

void BM_SubmitToDone(benchmark::State& state) {
  Subject subject;
  for (auto _ : state) {
    subject.Submit(static_cast<int>(state.range(0)));
    subject.tasks->WaitFor(static_cast<int64_t>(subject.sequence));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_SubmitToDone)->Arg(1)->Arg(1000)->Unit(benchmark::kMicrosecond)->UseRealTime();

void BM_CopyFromStaging(benchmark::State& state) {
  Subject subject;
  auto done = std::make_shared<Counter>();
  int64_t copies = 0;
  for (auto _ : state) {
    subject.worker->Copy(true, 1, 0, 0, state.range(0), [done](absl::Status) { done->Add(1); });
    done->WaitFor(++copies);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_CopyFromStaging)->Arg(64)->Arg(1 << 20)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace
}  // namespace stride::broker

int main(int argc, char** argv) {
  using namespace stride::broker;
  benchmark::Initialize(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "usage: worker_bench [--benchmark_...] FOLDER_OF_WORKERS\n");
    return 64;
  }
  auto created = MakeBroker(argv[1], SandboxPolicy::Mode::kTry);
  auto bare = MakeBroker(argv[1], SandboxPolicy::Mode::kOff);
  if (!created.ok() || !bare.ok()) {
    std::fprintf(stderr, "%s\n", (created.ok() ? bare : created).status().ToString().c_str());
    return 1;
  }
  broker = *std::move(created);
  bare_broker = *std::move(bare);
  benchmark::RunSpecifiedBenchmarks();
  broker.reset();
  bare_broker.reset();
}
