#include "server/worker/cpu/device.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/environment.h"
#include "server/base/memory_file.h"
#include "server/worker/cpu/fault_handler.h"
#include "server/worker/cpu/lower/blas.h"
#include "server/worker/cpu/machine.h"
#include "server/worker/cpu/seal.h"
#include "server/worker/runtime/sandbox.h"

namespace stride::cpu {
namespace {

// An elementwise task with at most this many elements takes microseconds.
constexpr int64_t kBriefElements = 16 << 10;
// Reports of brief tasks are batched: this many, or for this time after the first.
constexpr int kMaxHeldBack = 32;
constexpr std::chrono::microseconds kMaxHoldBack{50};

bool IsBrief(const wire::Task& task) {
  if (!task.has_elementwise()) return false;
  int64_t elements = 1;
  for (int64_t extent : task.elementwise().extents()) {
    if (extent > kBriefElements) return false;
    elements *= extent;
    if (elements > kBriefElements) return false;
  }
  return true;
}

}  // namespace

absl::Status CpuDevice::Start(const Environment& environment) {
  environment_ = environment;
  int threads = environment.num_threads > 0 ? environment.num_threads : AvailableThreads();
  pool_ = std::make_unique<cpucuda::ThreadPool>(threads);
  InstallFaultHandler(*pool_);
  compute_ = std::make_unique<SerialQueue>();
  compute_->Push(UseSignalStack);
  compute_->Drain();
  uploads_ = std::make_unique<SerialQueue>();
  downloads_ = std::make_unique<SerialQueue>();
  StartBlasThreads(threads);
  // Last: from here on clients' code may run, and no thread can be started.
  return worker::InSandbox() ? Seal() : absl::OkStatus();
}

absl::StatusOr<UniqueFd> CpuDevice::CreateArena(uint64_t, uint64_t) {
  return absl::UnimplementedError("arenas of the CPU device are made by the daemon");
}

absl::Status CpuDevice::MapArena(uint64_t arena, uint64_t size, UniqueFd fd) {
  return arenas_.Map(arena, size, fd.get());
}

absl::Status CpuDevice::MapHostArena(uint64_t, uint64_t, UniqueFd) {
  return absl::UnimplementedError("all arenas of the CPU device are host memory: MapArena");
}

absl::Status CpuDevice::MapPeerArena(uint64_t arena, uint64_t size, UniqueFd fd) {
  return peers_.Map(arena, size, fd.get(), /*writable=*/false);
}

absl::Status CpuDevice::UnmapArena(uint64_t arena) {
  for (auto& [id, graph] : graphs_) graph.Forget();
  return (peers_.Contains(arena) ? peers_ : arenas_).Unmap(arena);
}

absl::StatusOr<wire::ModuleLoaded> CpuDevice::LoadModule(uint64_t module, UniqueFd object,
                                                         const wire::LoadModule& load) {
  if (absl::Status s = CheckMemoryFile(object.get(), load.size()); !s.ok()) return s;
  auto loaded = LoadedModule::Load(object.get(), load.description());
  if (!loaded.ok()) return loaded.status();
  if (!modules_.emplace(module, *loaded).second) {
    return absl::InternalError(absl::StrCat("module ", module, " is loaded already"));
  }
  return (*loaded)->Attributes();
}

absl::Status CpuDevice::UnloadModule(uint64_t module) {
  for (auto& [id, graph] : graphs_) graph.Forget();
  if (modules_.erase(module) > 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("module ", module, " is not loaded"));
}

absl::Status CpuDevice::LoadGraph(uint64_t graph, wire::Graph steps) {
  if (graphs_.emplace(graph, std::move(steps)).second) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("graph ", graph, " is loaded already"));
}

absl::Status CpuDevice::UnloadGraph(uint64_t graph) {
  if (graphs_.erase(graph) > 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("graph ", graph, " is not loaded"));
}

void CpuDevice::Enqueue(const wire::Task& task) {
  if (task.has_graph()) return EnqueueGraph(task);
  // Look up and check now, on the thread that owns the tables; an error is reported in order.
  auto work = std::make_shared<absl::StatusOr<Work>>(Lower(Context(), task));
  compute_->Push(
      [this, sequence = task.sequence(), label = task.label(), work = std::move(work)] {
        RunTask(sequence, [&]() -> absl::Status {
          return work->ok() ? RunWork(sequence, label, **work) : work->status();
        });
      },
      IsBrief(task));
}

void CpuDevice::EnqueueGraph(const wire::Task& task) {
  absl::StatusOr<std::shared_ptr<const GraphWork>> work =
      absl::InternalError(absl::StrCat("graph ", task.graph().graph(), " is not loaded"));
  auto graph = graphs_.find(task.graph().graph());
  if (graph != graphs_.end()) work = graph->second.Lower(Context(), task.graph());
  compute_->Push([this, sequence = task.sequence(), work = std::move(work)] {
    RunTask(sequence, [&]() -> absl::Status {
      if (!work.ok()) return work.status();
      for (size_t i = 0; i < (*work)->steps.size(); ++i) {
        const GraphWork::Step& step = (*work)->steps[i];
        absl::Status status = RunWork(sequence, step.label, step.work);
        if (!status.ok()) return OfStep(status, step.label, i);
      }
      return absl::OkStatus();
    });
  });
}

absl::Status CpuDevice::RunWork(uint64_t sequence, const std::string& label, const Work& work) {
  BeginFaultScope(sequence, label, work);
  absl::Status status = work.run();
  EndFaultScope();
  return status;
}

void CpuDevice::RunTask(uint64_t sequence, absl::FunctionRef<absl::Status()> run) {
  bool runs = gate_.Begin(sequence);
  environment_.status_page->started_sequence.store(static_cast<uint32_t>(sequence));
  auto begin = std::chrono::steady_clock::now();
  absl::Status status = runs ? run() : worker::TaskGate::CancelledResult();
  const auto end = std::chrono::steady_clock::now();
  const std::chrono::duration<double> seconds = end - begin;
  if (!runs) {
    wire::MarkTakenOut(*environment_.status_page, sequence);
  } else if (!status.ok()) {
    wire::MarkFailed(*environment_.status_page, sequence);
  }
  environment_.status_page->completed_sequence.store(static_cast<uint32_t>(sequence));
  if (!printed_.empty()) SendPrinted(sequence);
  environment_.completions->TaskDone(sequence, status, seconds.count(), MayHoldBack(end));
}

void CpuDevice::SendPrinted(uint64_t sequence) {
  print_budget_.Take(&printed_, Now());
  environment_.completions->Printed(sequence, printed_);
  printed_ = {};
}

bool CpuDevice::MayHoldBack(std::chrono::steady_clock::time_point now) {
  if (num_held_back_ == 0) held_back_since_ = now;
  const bool may = num_held_back_ < kMaxHeldBack && now - held_back_since_ < kMaxHoldBack &&
                   compute_->BriefIsNext();
  num_held_back_ = may ? num_held_back_ + 1 : 0;
  return may;
}

void CpuDevice::Cancel(absl::Span<const uint64_t> sequences) {
  gate_.Cancel(sequences, environment_.completions);
}

void CpuDevice::Copy(const wire::Copy& copy) {
  auto place = arenas_.Bytes(copy.arena(), copy.arena_offset(), copy.size());
  bool in_staging = copy.staging_offset() <= environment_.staging_bytes &&
                    copy.size() <= environment_.staging_bytes - copy.staging_offset();
  absl::Status status = place.status();
  if (copy.region() != 0) status = absl::UnimplementedError("copies with a region on a CPU device");
  if (status.ok() && !in_staging)
    status = absl::InternalError("a copy lies outside the staging memory");
  SerialQueue& queue = copy.to_device() ? *uploads_ : *downloads_;
  if (!status.ok()) {
    queue.Push([this, id = copy.id(), status] { environment_.completions->CopyDone(id, status); });
    return;
  }
  std::byte* staging = environment_.staging + copy.staging_offset();
  queue.Push([this, place = *std::move(place), staging, id = copy.id(), size = copy.size(),
              to_device = copy.to_device()] {
    std::memcpy(to_device ? place.address : staging, to_device ? staging : place.address, size);
    environment_.completions->CopyDone(id, absl::OkStatus());
  });
}

void CpuDevice::Drain() {
  compute_->Drain();
  uploads_->Drain();
  downloads_->Drain();
}

}  // namespace stride::cpu
