#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/worker/cuda/completion_poller.h"
#include "server/worker/cuda/driver/arena_table.h"
#include "server/worker/cuda/driver/driver.h"
#include "server/worker/cuda/driver/handles.h"
#include "server/worker/cuda/driver/kernel_module.h"
#include "server/worker/cuda/driver/scratch.h"
#include "server/worker/cuda/driver/texture_table.h"
#include "server/worker/cuda/graph_table.h"
#include "server/worker/cuda/launch_batch.h"
#include "server/worker/cuda/lower/fft.h"
#include "server/worker/cuda/lower/gather.h"
#include "server/worker/cuda/lower/linalg.h"
#include "server/worker/cuda/lower/lowering.h"
#include "server/worker/cuda/lower/matmul.h"
#include "server/worker/cuda/region_copier.h"
#include "server/worker/runtime/device.h"

namespace stride::cuda {

// An NVIDIA GPU. Tasks run on one stream, uploads and downloads on one each, and copies of regions
// on two more. After its launches, or with the last of them (codegen::EndMark), each work writes
// its number to host memory in stream order. A few short products of one packet share the last
// one's write. Tasks write to
// StatusPage::completed_sequence, so that after a fault the daemon can read which task was the
// first not to end.
class CudaDevice : public worker::Device {
 public:
  CudaDevice() = default;
  // Waits for enqueued work.
  ~CudaDevice() override;

  absl::Status Start(const Environment& environment) override;
  absl::StatusOr<UniqueFd> CreateArena(uint64_t arena, uint64_t size) override;
  absl::Status MapArena(uint64_t arena, uint64_t size, UniqueFd fd) override;
  absl::Status MapHostArena(uint64_t arena, uint64_t size, UniqueFd fd) override;
  absl::Status UnmapArena(uint64_t arena) override;
  absl::Status MapPeerArena(uint64_t arena, uint64_t size, UniqueFd fd) override;
  absl::StatusOr<wire::ModuleLoaded> LoadModule(uint64_t module, UniqueFd object,
                                                const wire::LoadModule& load) override;
  absl::Status UnloadModule(uint64_t module) override;
  absl::Status LoadGraph(uint64_t graph, wire::Graph steps) override;
  absl::Status UnloadGraph(uint64_t graph) override;
  void Enqueue(const wire::Task& task) override;
  void EnqueueAll(const google::protobuf::RepeatedPtrField<wire::Task>& tasks) override;
  void Cancel(absl::Span<const uint64_t> sequences) override;
  void Copy(const wire::Copy& copy) override;
  absl::Status MapRegion(uint64_t region, uint64_t size, UniqueFd fd) override;
  absl::Status UnmapRegion(uint64_t region) override;
  void Drain() override;

 private:
  // One cache line of pinned memory for each copy direction's mark.
  struct CopyMarks {
    alignas(64) std::atomic<uint32_t> upload;
    alignas(64) std::atomic<uint32_t> download;
    alignas(64) std::atomic<uint32_t> region_upload;
    alignas(64) std::atomic<uint32_t> region_download;
  };
  static constexpr uint64_t kCopyMarksBytes = 4096;
  static constexpr uint32_t kMaxFaults = 4096;
  static constexpr uint64_t kFaultsBytes = kMaxFaults * sizeof(codegen::RoutineFault);

  // A smaller copy takes the driver no longer than a kernel launch.
  static constexpr uint64_t kLeastItemCopy = 256 << 10;

  // An arena that no command can name. Intermediate values of programs up to this size are there,
  // at the same address in all replays.
  static constexpr uint64_t kProgramScratch = std::numeric_limits<uint64_t>::max();
  static constexpr uint64_t kProgramScratchBytes = 16 << 20;

  // The mark that reports a task's end: its own, or the next task's.
  enum class Mark { kItsOwn, kOfTheNext };

  absl::Status StartStreams();
  // `told_by` the next task's mark: neither task can fault, and the next is enqueued immediately
  // after.
  void Enqueue(const wire::Task& task, Mark told_by);
  // Lowers a task, or a step of a graph, on `stream`. `fault`, `device_fault`: see
  // GraphTable::LowerStep.
  absl::Status Lower(const wire::Task& task, CUstream stream, codegen::RoutineFault* fault,
                     CUdeviceptr device_fault, TaskEnd* end = nullptr);
  // `fault` may be null.
  absl::Status LowerReduction(const Lowering& lowering, const wire::ReduceLaunch& launch);
  absl::Status LowerKernel(const Lowering& lowering, const wire::KernelLaunch& launch,
                           const codegen::RoutineFault* fault);
  // Whether the kernel may synchronize its grid in a launch that is not cooperative.
  bool MayMissGrid(const wire::KernelLaunch& launch) const;
  absl::Status LowerGraph(const wire::GraphLaunch& launch, codegen::RoutineFault* faults);
  // Whether LaunchGathered will launch the task with others; otherwise call Enqueue, after
  // LaunchGathered.
  bool Gather(const wire::Task& task);
  void LaunchGathered();
  // False: the driver refused, and none was launched. The driver is not asked again.
  bool LaunchTogether(absl::Span<EmittedLaunch> launches);
  std::vector<absl::Status> LaunchEach(absl::Span<EmittedLaunch> launches);
  // Later lookups count as uses by the task with this mark.
  void BeginTask(uint32_t mark);
  TaskEnd EndOf(uint32_t mark) const;
  Lowering MakeLowering(CUstream stream, CUdeviceptr device_fault, TaskEnd* end);
  absl::StatusOr<codegen::RoutineFault*> NewGraphFaults(const wire::GraphLaunch& launch);
  // Reserves `count` consecutive places in which the task being lowered reports faults of its data.
  absl::StatusOr<codegen::RoutineFault*> NewFaults(uint32_t count);
  absl::Status LowerZeroFill(const wire::ZeroFill& fill, CUstream stream);
  absl::Status LowerCopyBytes(const Lowering& lowering, const wire::CopyBytes& copy);
  void CopyRegion(const wire::Copy& copy);
  absl::Status LaunchCopy(const wire::Copy& copy, CUstream stream);
  absl::Status LaunchPeerCopy(const wire::Copy& copy, CUdeviceptr target, CUstream stream);
  struct LoadedModule {
    KernelModule kernels;
    uint32_t last_task = 0;  // the last task that used it
    bool may_print = false;
  };
  absl::StatusOr<KernelModule*> FindModule(uint64_t module);
  // Ends the process when the device is lost; otherwise returns.
  void CheckAlive();
  // Device address of StatusPage::completed_sequence.
  CUdeviceptr CompletedWord() const;
  // Ends the process unless the mark was enqueued: without marks nothing would ever be reported.
  void RequireMark(CUresult result);
  // Call after a task's launches: records an event if one of them may have printed, else returns
  // null.
  std::shared_ptr<const Event> NotePrints();
  // Call before a task that may fault, or writes its mark itself.
  // Enqueues a store of `mark` at `address`.
  void WriteMark(CUstream stream, CUdeviceptr address, uint32_t mark);

  Environment environment_;
  std::shared_ptr<const Driver> driver_;
  CUdevice device_ = 0;
  LaunchLimits limits_;
  // In order of construction; destroyed in reverse.
  Context context_;
  PinnedRegion staging_, status_page_, copy_marks_region_, faults_region_;
  // Used in turn, one place for each queued task that may find a fault in its data.
  codegen::RoutineFault* faults_ = nullptr;
  uint32_t num_faults_ = 0;               // number handed out
  CompletionPoller::Faults task_faults_;  // places of the task being lowered
  CopyMarks* copy_marks_ = nullptr;
  Stream compute_, upload_, download_, region_upload_, region_download_;
  ArenaTable arenas_;
  ArenaTable peers_;  // other devices' arenas: read only
  std::unordered_map<uint64_t, LoadedModule> modules_;
  uint32_t current_task_ = 0;
  std::optional<Scratch> scratch_;
  std::optional<HostRing> values_;
  std::optional<TextureTable> textures_;
  std::unique_ptr<GraphTable> graphs_;
  std::optional<PrintCapture> capture_;  // set where the device owns the process's output
  bool may_print_ = false;               // the task being lowered may print
  std::optional<LaunchBatch> batch_;
  bool batches_ = true;  // the driver supports batches
  // Tasks of one packet that are launched together.
  std::vector<CompletionPoller::Work> gathered_work_;
  std::vector<EmittedLaunch> gathered_;
  std::optional<Matmul> matmul_;
  // Copies between addresses that are not aligned to 16 bytes.
  cuda::Gather item_copies_;
  std::optional<Linalg> linalg_;
  std::optional<Fft> fft_;
  std::optional<CompletionPoller> poller_;
  std::optional<RegionCopier> regions_;
  uint32_t num_uploads_ = 0, num_downloads_ = 0;
  uint32_t num_region_uploads_ = 0, num_region_downloads_ = 0;
};

}  // namespace stride::cuda
