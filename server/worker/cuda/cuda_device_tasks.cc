// Tasks of CudaDevice.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <utility>

#include "server/worker/cuda/cuda_device.h"
#include "server/worker/cuda/driver/cuda_status.h"
#include "server/worker/cuda/lower/elementwise.h"
#include "server/worker/cuda/lower/kernel.h"
#include "server/worker/cuda/lower/reduce.h"
#include "server/worker/cuda/lower/routine.h"

namespace stride::cuda {

namespace {

// Up to this size a product takes no longer than its launch and mark, so that kShareMark tasks
// share the last one's mark.
constexpr double kShortProductFlops = 5e8;
constexpr int kShareMark = 4;

// Floating-point operations of a product by the library, which cannot fault, since its operands are
// checked and its code is the library's. nullopt: the task is no such product.
std::optional<double> LibraryProductFlops(const wire::Task& task) {
  if (!task.has_matmul() || task.matmul().module() != 0) return std::nullopt;
  const wire::MatmulLaunch& product = task.matmul();
  double flops = 2.0 * static_cast<double>(product.m()) * static_cast<double>(product.n()) *
                 static_cast<double>(product.k());
  for (int64_t extent : product.batch_extents()) flops *= static_cast<double>(extent);
  return flops;
}

bool IsShortProduct(const wire::Task& task) {
  const std::optional<double> flops = LibraryProductFlops(task);
  return flops.has_value() && *flops <= kShortProductFlops;
}

}  // namespace

void CudaDevice::BeginTask(uint32_t mark) {
  current_task_ = mark;
  may_print_ = false;
  arenas_.BeginUse(CompletionPoller::kCompute, mark);
  peers_.BeginUse(CompletionPoller::kCompute, mark);
}

TaskEnd CudaDevice::EndOf(uint32_t mark) const {
  return {{CompletedWord(), scratch_->end_arrivals(), mark}};
}

void CudaDevice::Enqueue(const wire::Task& task) { Enqueue(task, Mark::kItsOwn); }

void CudaDevice::Enqueue(const wire::Task& task, Mark told_by) {
  const uint32_t mark = static_cast<uint32_t>(task.sequence());
  environment_.status_page->started_sequence.store(mark, std::memory_order_release);
  BeginTask(mark);
  absl::StatusOr<codegen::RoutineFault*> fault = nullptr;
  // Before Begin, since this may wait for earlier tasks.
  if (task.has_routine() || task.has_linalg() || (task.has_kernel() && MayMissGrid(task.kernel())))
    fault = NewFaults(1);
  if (task.has_graph()) fault = NewGraphFaults(task.graph());
  poller_->Begin(CompletionPoller::kCompute, task.sequence(), mark, task.label());
  TaskEnd end = EndOf(mark);
  absl::Status status = fault.status();
  if (status.ok()) {
    status = task.has_graph() ? LowerGraph(task.graph(), *fault)
                              : Lower(task, compute_.get(), *fault, /*device_fault=*/0, &end);
  }
  if (!status.ok()) {
    CheckAlive();
    wire::MarkFailed(*environment_.status_page, task.sequence());
  }
  scratch_->Trim();
  std::shared_ptr<const Event> prints = NotePrints();
  if (told_by == Mark::kOfTheNext) {
    // The next task's mark reports the end.
  } else if (!end.told) {
    WriteMark(compute_.get(), end.mark.word, mark);
  }
  poller_->Launched(CompletionPoller::kCompute, {std::move(status)},
                    std::exchange(task_faults_, {}), std::move(prints));
}

std::shared_ptr<const Event> CudaDevice::NotePrints() {
  if (!may_print_ || !capture_.has_value()) return nullptr;
  absl::StatusOr<Event> event = Event::Create(*driver_);
  if (!event.ok() || driver_->cuEventRecord(event->get(), compute_.get()) != CUDA_SUCCESS) {
    CheckAlive();
    return nullptr;  // the text is reported with a later task's
  }
  return std::make_shared<const Event>(*std::move(event));
}

void CudaDevice::EnqueueAll(const google::protobuf::RepeatedPtrField<wire::Task>& tasks) {
  int unmarked = 0;
  for (int i = 0; i < tasks.size(); ++i) {
    if (batches_ && Gather(tasks[i])) continue;
    LaunchGathered();
    const bool share = unmarked + 1 < kShareMark && i + 1 < tasks.size() &&
                       IsShortProduct(tasks[i]) && IsShortProduct(tasks[i + 1]);
    unmarked = share ? unmarked + 1 : 0;
    Enqueue(tasks[i], share ? Mark::kOfTheNext : Mark::kItsOwn);
  }
  LaunchGathered();
}

bool CudaDevice::Gather(const wire::Task& task) {
  if (!task.has_elementwise()) return false;
  if (gathered_.size() == LaunchBatch::kMost) LaunchGathered();
  const uint32_t mark = static_cast<uint32_t>(task.sequence());
  BeginTask(mark);
  absl::StatusOr<KernelModule*> module = FindModule(task.elementwise().module());
  if (!module.ok() || may_print_) return false;
  TaskEnd end = EndOf(mark);
  auto launch = PrepareElementwise(MakeLowering(compute_.get(), /*device_fault=*/0, &end), **module,
                                   task.elementwise());
  // A launch that does not write its mark is long, and gains nothing.
  if (!launch.ok() || !launch->has_value() || !(*launch)->marks()) return false;
  gathered_work_.push_back({task.sequence(), mark, task.label()});
  gathered_.push_back(**std::move(launch));
  return true;
}

void CudaDevice::LaunchGathered() {
  if (gathered_.empty()) return;
  const uint32_t last = gathered_work_.back().mark;
  environment_.status_page->started_sequence.store(last, std::memory_order_release);
  poller_->Begin(CompletionPoller::kCompute, absl::MakeSpan(gathered_work_));
  std::vector<absl::Status> statuses(gathered_.size());
  const bool together = gathered_.size() > 1 && LaunchTogether(absl::MakeSpan(gathered_));
  if (!together) statuses = LaunchEach(absl::MakeSpan(gathered_));
  for (size_t i = 0; i < statuses.size(); ++i) {
    if (!statuses[i].ok()) wire::MarkFailed(*environment_.status_page, gathered_work_[i].id);
  }
  if (!statuses.back().ok()) WriteMark(compute_.get(), EndOf(last).mark.word, last);
  poller_->Launched(CompletionPoller::kCompute, statuses);
  gathered_.clear();
  gathered_work_.clear();
}

bool CudaDevice::LaunchTogether(absl::Span<EmittedLaunch> launches) {
  const absl::Status launched = batch_->Launch(launches);
  if (launched.ok()) return true;
  CheckAlive();
  batches_ = false;
  std::fprintf(stderr, "stride worker: tasks are launched one by one: %s\n",
               launched.ToString().c_str());
  return false;
}

std::vector<absl::Status> CudaDevice::LaunchEach(absl::Span<EmittedLaunch> launches) {
  std::vector<absl::Status> statuses;
  for (EmittedLaunch& launch : launches) {
    statuses.push_back(LaunchPrepared(*driver_, compute_.get(), launch));
    if (!statuses.back().ok()) CheckAlive();
  }
  return statuses;
}

absl::StatusOr<codegen::RoutineFault*> CudaDevice::NewFaults(uint32_t count) {
  if (count > kMaxFaults) return absl::InternalError("a task with too many faults to note");
  if (num_faults_ % kMaxFaults + count > kMaxFaults)
    num_faults_ += kMaxFaults - num_faults_ % kMaxFaults;
  // The next places may still be in use: once in thousands of such tasks.
  if (num_faults_ % kMaxFaults == 0 && num_faults_ > 0) poller_->Drain();
  codegen::RoutineFault* faults = &faults_[num_faults_ % kMaxFaults];
  num_faults_ += count;
  std::fill_n(faults, count, codegen::RoutineFault());
  task_faults_.places = {faults, count};
  return faults;
}

absl::StatusOr<codegen::RoutineFault*> CudaDevice::NewGraphFaults(const wire::GraphLaunch& launch) {
  absl::StatusOr<GraphTable::Needs> needs = graphs_->NeedsOf(launch.graph());
  if (!needs.ok()) return needs.status();
  if (needs->num_faults == 0) return nullptr;
  absl::StatusOr<codegen::RoutineFault*> faults =
      NewFaults(static_cast<uint32_t>(needs->num_faults));
  if (faults.ok()) task_faults_.prefixes = std::move(needs->fault_places);
  return faults;
}

absl::Status CudaDevice::LowerGraph(const wire::GraphLaunch& launch,
                                    codegen::RoutineFault* faults) {
  // An executable looks up no arenas: record their uses here.
  for (const wire::Location& slot : launch.slots()) {
    absl::StatusOr<CUdeviceptr> place = arenas_.Range(slot.arena(), slot.offset(), 0);
    if (!place.ok()) return place.status();
  }
  absl::StatusOr<GraphTable::Needs> needs = graphs_->NeedsOf(launch.graph());
  if (!needs.ok()) return needs.status();
  for (uint64_t module : needs->modules) {
    absl::StatusOr<KernelModule*> found = FindModule(module);
    if (!found.ok()) return found.status();
  }
  return graphs_->Replay(
      launch, faults,
      [this](const wire::Task& step, CUstream stream, codegen::RoutineFault* fault,
             CUdeviceptr device_fault) { return Lower(step, stream, fault, device_fault); });
}

Lowering CudaDevice::MakeLowering(CUstream stream, CUdeviceptr device_fault, TaskEnd* end) {
  return {*driver_,  stream,   limits_,    arenas_,      peers_,
          *scratch_, *values_, *textures_, device_fault, end};
}

absl::Status CudaDevice::Lower(const wire::Task& task, CUstream stream,
                               codegen::RoutineFault* fault, CUdeviceptr device_fault,
                               TaskEnd* end) {
  const Lowering lowering = MakeLowering(stream, device_fault, end);
  auto with_module = [&](uint64_t id, auto lower, const auto& launch) -> absl::Status {
    absl::StatusOr<KernelModule*> module = FindModule(id);
    if (!module.ok()) return module.status();
    return lower(lowering, **module, launch);
  };
  switch (task.kind_case()) {
    case wire::Task::kElementwise:
      return with_module(task.elementwise().module(), LowerElementwise, task.elementwise());
    case wire::Task::kReduce:
      return LowerReduction(lowering, task.reduce());
    case wire::Task::kKernel:
      return LowerKernel(lowering, task.kernel(), fault);
    case wire::Task::kMatmul: {
      if (task.matmul().module() == 0) return matmul_->Lower(lowering, nullptr, task.matmul());
      absl::StatusOr<KernelModule*> module = FindModule(task.matmul().module());
      if (!module.ok()) return module.status();
      return matmul_->Lower(lowering, *module, task.matmul());
    }
    case wire::Task::kRoutine: {
      absl::StatusOr<KernelModule*> module = FindModule(task.routine().module());
      if (!module.ok()) return module.status();
      return LowerRoutine(lowering, **module, task.routine(), fault);
    }
    case wire::Task::kLinalg:
      return linalg_->Lower(lowering, task.linalg(), fault);
    case wire::Task::kFft:
      return fft_->Lower(lowering, task.fft());
    case wire::Task::kZeroFill:
      return LowerZeroFill(task.zero_fill(), stream);
    case wire::Task::kCopyBytes:
      return LowerCopyBytes(lowering, task.copy_bytes());
    case wire::Task::kGraph:
    case wire::Task::KIND_NOT_SET:
      break;
  }
  return absl::UnimplementedError("a task of a kind that this worker does not know");
}

absl::Status CudaDevice::LowerReduction(const Lowering& lowering,
                                        const wire::ReduceLaunch& launch) {
  absl::StatusOr<KernelModule*> module = FindModule(launch.module());
  if (!module.ok()) return module.status();
  if (!launch.has_by_blocks()) return LowerReduce(lowering, **module, nullptr, launch);
  absl::StatusOr<KernelModule*> loops = FindModule(launch.by_blocks().loops());
  if (!loops.ok()) return loops.status();
  return LowerReduce(lowering, **module, *loops, launch);
}

bool CudaDevice::MayMissGrid(const wire::KernelLaunch& launch) const {
  if (launch.cooperative()) return false;
  auto found = modules_.find(launch.module());
  return found != modules_.end() && found->second.kernels.grid_barrier() != 0;
}

absl::Status CudaDevice::LowerKernel(const Lowering& lowering, const wire::KernelLaunch& launch,
                                     const codegen::RoutineFault* fault) {
  absl::StatusOr<KernelModule*> module = FindModule(launch.module());
  if (!module.ok()) return module.status();
  CUdeviceptr address = 0;
  if (fault != nullptr) {
    address = faults_region_.device_address() +
              static_cast<CUdeviceptr>(fault - faults_) * sizeof(codegen::RoutineFault);
  }
  return cuda::LowerKernel(lowering, **module, launch, address);
}

absl::Status CudaDevice::LowerZeroFill(const wire::ZeroFill& fill, CUstream stream) {
  absl::StatusOr<CUdeviceptr> address = arenas_.Range(fill.arena(), fill.offset(), fill.size());
  if (!address.ok()) return address.status();
  if (fill.size() == 0) return absl::OkStatus();
  return ToStatus(driver_->cuMemsetD8Async(*address, 0, fill.size(), stream), "filling with zeros");
}

absl::Status CudaDevice::LowerCopyBytes(const Lowering& lowering, const wire::CopyBytes& copy) {
  absl::StatusOr<CUdeviceptr> from =
      arenas_.Range(copy.from_arena(), copy.from_offset(), copy.size());
  if (!from.ok()) return from.status();
  absl::StatusOr<CUdeviceptr> to = arenas_.Range(copy.to_arena(), copy.to_offset(), copy.size());
  if (!to.ok()) return to.status();
  if (copy.size() == 0) return absl::OkStatus();
  // The driver copies at a tenth of the memory's rate between addresses that are not aligned to
  // words of 4 bytes.
  const uint64_t places = *from | *to | copy.size(), item = places & (~places + 1);
  if (copy.size() >= kLeastItemCopy && item == 2) {
    GatherSource source;
    source.address = *from;
    source.rows = source.column_stride = 1;
    source.columns = static_cast<int64_t>(copy.size() / item);
    return item_copies_.Run(lowering, source, static_cast<int64_t>(item), *to);
  }
  return ToStatus(driver_->cuMemcpyDtoDAsync(*to, *from, copy.size(), lowering.stream),
                  "copying on the device");
}

}  // namespace stride::cuda
