#include "server/engine/scheduling/health_probe.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/base/environment.h"
#include "server/base/memory_file.h"
#include "server/engine/memory/staged_copy.h"
#include "server/wire/status.h"

namespace stride::engine {
namespace {

constexpr uint64_t kArena = 1;
constexpr uint64_t kBytes = 4096;
constexpr uint64_t kClearedBegin = 1024, kClearedEnd = 3072;

std::string Pattern() {
  std::string pattern(kBytes, '\0');
  for (uint64_t i = 0; i < kBytes; ++i) pattern[i] = static_cast<char>(1 + i % 251);
  return pattern;
}

std::string Answer() {
  std::string answer = Pattern();
  std::fill(answer.begin() + kClearedBegin, answer.begin() + kClearedEnd, '\0');
  return answer;
}

// The worker's reports. Shared, since the worker's reader thread may outlive the probe.
struct Told {
  absl::Mutex mutex;
  bool ended = false;
  absl::Status status;

  void End(absl::Status what) {
    absl::MutexLock lock(&mutex);
    if (std::exchange(ended, true)) return;
    status = std::move(what);
  }
};

// The probe's memory on the device.
class ProbeMemory {
 public:
  static absl::StatusOr<ProbeMemory> Create(const std::shared_ptr<broker::Worker>& worker) {
    ProbeMemory memory;
    memory.worker_ = worker;
    uint64_t granularity =
        static_cast<uint64_t>(std::max<int64_t>(1, worker->device().arena_granularity_bytes()));
    uint64_t size = (kBytes + granularity - 1) / granularity * granularity;
    if (!worker->device().host_memory()) {
      auto fd = worker->CreateArena(kArena, size);
      if (!fd.ok()) return fd.status();
      memory.fd_ = *std::move(fd);
      return memory;
    }
    auto fd = CreateMemoryFile("stride-canary", size);
    if (!fd.ok()) return fd.status();
    auto map = MemoryMap::Map(fd->get(), size, /*writable=*/true);
    if (!map.ok()) return map.status();
    if (auto mapped = worker->MapArena(kArena, size, fd->get()); !mapped.ok()) return mapped;
    memory.fd_ = *std::move(fd);
    memory.map_ = *std::move(map);
    return memory;
  }

  absl::Status Write(const std::string& bytes, SteadyTime deadline) {
    if (worker_->device().host_memory()) {
      std::memcpy(map_.data(), bytes.data(), bytes.size());
      return absl::OkStatus();
    }
    StagedWriter writer(worker_, kArena, 0, deadline);
    if (absl::Status status = writer.Write(bytes); !status.ok()) return status;
    return writer.Finish();
  }

  absl::StatusOr<std::string> Read(SteadyTime deadline) {
    if (worker_->device().host_memory())
      return std::string(reinterpret_cast<const char*>(map_.data()), kBytes);
    StagedReader reader(worker_, kArena, 0, kBytes, deadline);
    std::string bytes;
    while (bytes.size() < kBytes) {
      auto chunk = reader.Next(kBytes);
      if (!chunk.ok()) return chunk.status();
      if (chunk->bytes.empty()) break;
      bytes.append(chunk->bytes);
    }
    return bytes;
  }

 private:
  std::shared_ptr<broker::Worker> worker_;
  UniqueFd fd_;
  MemoryMap map_;
};

absl::Status Clear(broker::Worker& worker, Told& told, SteadyTime deadline) {
  wire::Task task;
  task.set_sequence(1);
  task.set_label("canary");
  task.mutable_zero_fill()->set_arena(kArena);
  task.mutable_zero_fill()->set_offset(kClearedBegin);
  task.mutable_zero_fill()->set_size(kClearedEnd - kClearedBegin);
  wire::TaskPacket packet;
  packet.Add(task);
  if (absl::Status status = worker.Submit(packet); !status.ok()) return status;
  absl::MutexLock lock(&told.mutex);
  if (!Await(told.mutex, absl::Condition(&told.ended), deadline))
    return absl::DeadlineExceededError("it did not end in time");
  return told.status;
}

absl::Status Try(const std::shared_ptr<broker::Worker>& worker, Told& told, SteadyTime deadline) {
  auto memory = ProbeMemory::Create(worker);
  if (!memory.ok()) return memory.status();
  if (absl::Status status = memory->Write(Pattern(), deadline); !status.ok()) return status;
  if (absl::Status status = Clear(*worker, told, deadline); !status.ok()) return status;
  auto bytes = memory->Read(deadline);
  if (!bytes.ok()) return bytes.status();
  if (*bytes != Answer()) return absl::DataLossError("the device gave a wrong answer");
  return absl::OkStatus();
}

}  // namespace

ProbeResult RunProbe(broker::Broker* broker, Timer* timer, int device, absl::Duration timeout) {
  auto worker = broker->StartWorker(device);
  if (!worker.ok()) return {worker.status(), /*started=*/false};
  auto told = std::make_shared<Told>();
  (*worker)->Adopt({.tasks_done =
                        [told](absl::Span<const wire::TaskResult> results) {
                          for (const auto& result : results)
                            told->End(wire::ToStatus(result.status()));
                        },
                    .cancelled = [](uint64_t, bool) {},
                    .died =
                        [told](const broker::WorkerDeath& death) {
                          told->End(death.cause.ok() ? absl::AbortedError("its worker ended")
                                                     : death.cause);
                        }});
  // Only its worker's death ends a copy that hangs.
  SteadyTime deadline = Now() + timeout;
  timer->At(deadline, [weak = std::weak_ptr<broker::Worker>(*worker)] {
    if (auto worker = weak.lock()) worker->Kill(absl::DeadlineExceededError("it took too long"));
  });
  absl::Status status = Try(*worker, *told, deadline);
  if (status.ok()) {
    (*worker)->Shutdown();
  } else {
    (*worker)->Kill(absl::CancelledError("the canary failed"));
  }
  return {status, /*started=*/true};
}

}  // namespace stride::engine
