#include "server/worker/cuda/cuda_device.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/memory_file.h"
#include "server/worker/codegen/launch_abi.h"
#include "server/worker/cuda/driver/cuda_status.h"
#include "server/worker/cuda/driver/module_image.h"
#include "server/worker/cuda/driver/operand_bounds.h"

namespace stride::cuda {

CudaDevice::~CudaDevice() {
  if (poller_) Drain();
  regions_.reset();
  poller_.reset();
  matmul_.reset();
  linalg_.reset();
  fft_.reset();
  graphs_.reset();
  batch_.reset();
  scratch_.reset();
  if (compute_.get() != nullptr) driver_->cuStreamSynchronize(compute_.get());
  values_.reset();
  textures_.reset();
  item_copies_ = cuda::Gather();
  modules_.clear();
  if (copy_marks_ != nullptr) {
    copy_marks_region_ = PinnedRegion();
    munmap(copy_marks_, kCopyMarksBytes);
  }
  if (faults_ != nullptr) {
    faults_region_ = PinnedRegion();
    munmap(faults_, kFaultsBytes);
  }
}

absl::Status CudaDevice::Start(const Environment& environment) {
  environment_ = environment;
  absl::StatusOr<std::shared_ptr<const Driver>> driver = Driver::Load();
  if (!driver.ok()) return driver.status();
  driver_ = *std::move(driver);
  STRIDE_CUDA_RETURN(driver_->cuDeviceGet(&device_, environment.device_index),
                     absl::StrCat("opening device ", environment.device_index));
  limits_ = ReadLaunchLimits(*driver_, device_);
  absl::StatusOr<Context> context = Context::Retain(*driver_, device_);
  if (!context.ok()) return context.status();
  context_ = *std::move(context);
  return StartStreams();
}

absl::Status CudaDevice::StartStreams() {
  void* marks =
      mmap(nullptr, kCopyMarksBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (marks == MAP_FAILED) return absl::ErrnoToStatus(errno, "reserving a page for marks");
  copy_marks_ = new (marks) CopyMarks;
  void* faults =
      mmap(nullptr, kFaultsBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (faults == MAP_FAILED) return absl::ErrnoToStatus(errno, "reserving memory for faults");
  faults_ = new (faults) codegen::RoutineFault[kMaxFaults];
  struct {
    void* data;
    uint64_t size;
    PinnedRegion* region;
  } regions[] = {{environment_.staging, environment_.staging_bytes, &staging_},
                 {environment_.status_page, wire::kStatusPageBytes, &status_page_},
                 {marks, kCopyMarksBytes, &copy_marks_region_},
                 {faults, kFaultsBytes, &faults_region_}};
  for (auto& [data, size, region] : regions) {
    if (size == 0) continue;
    absl::StatusOr<PinnedRegion> pinned = PinnedRegion::Register(*driver_, data, size);
    if (!pinned.ok()) return pinned.status();
    *region = *std::move(pinned);
  }
  for (Stream* stream : {&compute_, &upload_, &download_, &region_upload_, &region_download_}) {
    absl::StatusOr<Stream> made = Stream::Create(*driver_);
    if (!made.ok()) return made.status();
    *stream = *std::move(made);
  }
  scratch_.emplace(*driver_, compute_.get());
  const int num_arrivals = codegen::ReduceArrivals(limits_.num_multiprocessors);
  if (absl::Status status = scratch_->Start(num_arrivals); !status.ok()) return status;
  values_.emplace(*driver_, compute_.get());
  textures_.emplace(*driver_, compute_.get(), TextureTable::ReadLimits(*driver_, device_));
  absl::StatusOr<std::unique_ptr<GraphTable>> graphs =
      GraphTable::Create(*driver_, compute_.get(), *scratch_);
  if (!graphs.ok()) return graphs.status();
  graphs_ = *std::move(graphs);
  batch_.emplace(*driver_, compute_.get());
  matmul_.emplace();
  linalg_.emplace();
  fft_.emplace();
  std::array<CompletionPoller::Watch, CompletionPoller::kNumLanes> watches;
  watches[CompletionPoller::kCompute] = {compute_.get(),
                                         &environment_.status_page->completed_sequence};
  watches[CompletionPoller::kUpload] = {upload_.get(), &copy_marks_->upload};
  watches[CompletionPoller::kDownload] = {download_.get(), &copy_marks_->download};
  watches[CompletionPoller::kRegionUpload] = {region_upload_.get(), &copy_marks_->region_upload};
  watches[CompletionPoller::kRegionDownload] = {region_download_.get(),
                                                &copy_marks_->region_download};
  if (environment_.owns_standard_output) {
    absl::StatusOr<PrintCapture> capture = PrintCapture::Start();
    if (!capture.ok()) return capture.status();
    capture_.emplace(*std::move(capture));
  }
  poller_.emplace(*driver_, context_, *environment_.completions, watches,
                  environment_.status_page->heartbeat, capture_.has_value() ? &*capture_ : nullptr);
  const CUdeviceptr words = copy_marks_region_.device_address();
  regions_.emplace(
      *driver_, context_, *poller_,
      RegionCopier::Direction{region_upload_.get(), CompletionPoller::kRegionUpload,
                              words + offsetof(CopyMarks, region_upload)},
      RegionCopier::Direction{region_download_.get(), CompletionPoller::kRegionDownload,
                              words + offsetof(CopyMarks, region_download)});
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> CudaDevice::CreateArena(uint64_t arena, uint64_t size) {
  if (arenas_.Contains(arena)) {
    return absl::InvalidArgumentError(absl::StrCat("arena ", arena, " is mapped already"));
  }
  absl::StatusOr<ArenaMapping::Created> created = ArenaMapping::Create(*driver_, device_, size);
  if (!created.ok()) {
    CheckAlive();
    return created.status();
  }
  if (absl::Status status = arenas_.Add(arena, std::move(created->mapping)); !status.ok()) {
    return status;
  }
  return std::move(created->fd);
}

absl::Status CudaDevice::MapArena(uint64_t arena, uint64_t size, UniqueFd fd) {
  absl::StatusOr<ArenaMapping> mapping = ArenaMapping::Import(*driver_, device_, size, fd);
  if (!mapping.ok()) {
    CheckAlive();
    return mapping.status();
  }
  return arenas_.Add(arena, *std::move(mapping));
}

absl::Status CudaDevice::MapHostArena(uint64_t arena, uint64_t size, UniqueFd fd) {
  absl::StatusOr<ArenaMapping> mapping = ArenaMapping::OfHostMemory(*driver_, size, fd);
  if (!mapping.ok()) {
    CheckAlive();
    return mapping.status();
  }
  return arenas_.Add(arena, *std::move(mapping));
}

// The memory stays the other device's: this maps it with access for this device.
absl::Status CudaDevice::MapPeerArena(uint64_t arena, uint64_t size, UniqueFd fd) {
  absl::StatusOr<ArenaMapping> mapping = ArenaMapping::Import(*driver_, device_, size, fd);
  if (!mapping.ok()) {
    CheckAlive();
    return mapping.status();
  }
  return peers_.Add(arena, *std::move(mapping));
}

absl::Status CudaDevice::UnmapArena(uint64_t arena) {
  ArenaTable& table = peers_.Contains(arena) ? peers_ : arenas_;
  // Unmapping under a running kernel would fault it. The daemon unmaps only unused arenas. An
  // unconditional wait would stall later commands until an unrelated long kernel ends.
  static_assert(ArenaTable::kNumLanes == CompletionPoller::kNumLanes);
  const auto marks = table.LastUse(arena);
  for (int lane = 0; lane < CompletionPoller::kNumLanes; ++lane) {
    if (!poller_->HasEnded(static_cast<CompletionPoller::Lane>(lane), marks[lane])) Drain();
  }
  graphs_->ForgetExecutables();
  textures_->Forget(arena);
  return table.Remove(arena);
}

absl::StatusOr<wire::ModuleLoaded> CudaDevice::LoadModule(uint64_t module, UniqueFd object,
                                                          const wire::LoadModule& load) {
  if (modules_.count(module) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("module ", module, " is loaded already"));
  }
  absl::StatusOr<MemoryMap> map = MemoryMap::Map(object.get(), load.size(), /*writable=*/false);
  if (!map.ok()) return map.status();
  const std::string_view bytes = map->view();
  if (absl::Status status = CheckImage(bytes); !status.ok()) return status;
  // PTX is text and must end in a zero byte, which the mapping may lack.
  std::string text;
  const void* image = bytes.data();
  if (ImageKindOf(bytes) == ImageKind::kPtx) {
    text = std::string(bytes);
    image = text.c_str();
  }
  absl::StatusOr<KernelModule> loaded = KernelModule::Load(*driver_, image, load.description());
  if (!loaded.ok()) {
    CheckAlive();
    return loaded.status();
  }
  wire::ModuleLoaded attributes = loaded->Attributes();
  modules_.emplace(module, LoadedModule{*std::move(loaded), current_task_, MayPrint(bytes)});
  return attributes;
}

absl::Status CudaDevice::UnloadModule(uint64_t module) {
  auto found = modules_.find(module);
  if (found == modules_.end()) {
    return absl::InvalidArgumentError(absl::StrCat("module ", module, " is not loaded"));
  }
  if (!poller_->HasEnded(CompletionPoller::kCompute, found->second.last_task)) Drain();
  graphs_->ForgetExecutables();
  batch_->Forget();
  modules_.erase(found);
  return absl::OkStatus();
}

absl::Status CudaDevice::LoadGraph(uint64_t graph, wire::Graph steps) {
  std::optional<ops::Location> scratch;
  const uint64_t bytes = steps.scratch_bytes();
  if (bytes > 0 && bytes <= kProgramScratchBytes) {
    // Allocated with the first graph that can use it, if there is memory.
    if (arenas_.Contains(kProgramScratch) ||
        CreateArena(kProgramScratch, kProgramScratchBytes).ok())
      scratch = {kProgramScratch, 0};
  }
  return graphs_->Load(graph, std::move(steps), scratch, [this](const wire::KernelLaunch& launch) {
    auto found = modules_.find(launch.module());
    if (found == modules_.end()) return GraphTable::KernelTraits();
    KernelModule& module = found->second.kernels;
    return GraphTable::KernelTraits{
        .sets_variables = !module.globals().all().empty() || module.grid_barrier() != 0,
        .may_fault = MayMissGrid(launch)};
  });
}

absl::Status CudaDevice::UnloadGraph(uint64_t graph) { return graphs_->Unload(graph); }

// A stream cannot give tasks back, and Enqueue passes every task to it at once, so each counts as
// begun even while it is queued there. The daemon then lets it end, and stops a late one like a
// running one.
void CudaDevice::Cancel(absl::Span<const uint64_t> sequences) {
  environment_.completions->TasksCancelled(sequences.front(), /*taken=*/false);
}

absl::Status CudaDevice::MapRegion(uint64_t region, uint64_t size, UniqueFd fd) {
  regions_->Map(region, size, std::move(fd));
  return absl::OkStatus();
}

absl::Status CudaDevice::UnmapRegion(uint64_t region) {
  regions_->Unmap(region);
  return absl::OkStatus();
}

void CudaDevice::CopyRegion(const wire::Copy& copy) {
  const bool up = copy.to_device();
  const uint32_t mark = up ? ++num_region_uploads_ : ++num_region_downloads_;
  arenas_.BeginUse(up ? CompletionPoller::kRegionUpload : CompletionPoller::kRegionDownload, mark);
  absl::StatusOr<CUdeviceptr> address =
      arenas_.Range(copy.arena(), copy.arena_offset(), copy.size());
  regions_->Enqueue({.id = copy.id(),
                     .mark = mark,
                     .to_device = up,
                     .region = copy.region(),
                     .region_offset = copy.staging_offset(),
                     .address = address.ok() ? *address : 0,
                     .size = copy.size(),
                     .status = address.status()});
}

void CudaDevice::Copy(const wire::Copy& copy) {
  if (copy.region() != 0) return CopyRegion(copy);
  const bool up = copy.to_device();
  const auto lane = up ? CompletionPoller::kUpload : CompletionPoller::kDownload;
  const CUstream stream = up ? upload_.get() : download_.get();
  const uint32_t mark = up ? ++num_uploads_ : ++num_downloads_;
  arenas_.BeginUse(lane, mark);
  peers_.BeginUse(lane, mark);
  poller_->Begin(lane, copy.id(), mark, "");
  absl::Status status = LaunchCopy(copy, stream);
  if (!status.ok()) CheckAlive();
  const uint64_t word = up ? offsetof(CopyMarks, upload) : offsetof(CopyMarks, download);
  WriteMark(stream, copy_marks_region_.device_address() + word, mark);
  poller_->Launched(lane, {std::move(status)});
}

absl::Status CudaDevice::LaunchCopy(const wire::Copy& copy, CUstream stream) {
  absl::StatusOr<CUdeviceptr> address =
      arenas_.Range(copy.arena(), copy.arena_offset(), copy.size());
  if (!address.ok()) return address.status();
  if (copy.source_arena() != 0) return LaunchPeerCopy(copy, *address, stream);
  absl::Status status = CheckRange(copy.staging_offset(), copy.size(), environment_.staging_bytes);
  if (!status.ok() || copy.size() == 0) return status;
  std::byte* host = environment_.staging + copy.staging_offset();
  return ToStatus(copy.to_device()
                      ? driver_->cuMemcpyHtoDAsync(*address, host, copy.size(), stream)
                      : driver_->cuMemcpyDtoHAsync(host, *address, copy.size(), stream),
                  copy.to_device() ? "uploading" : "downloading");
}

absl::Status CudaDevice::LaunchPeerCopy(const wire::Copy& copy, CUdeviceptr target,
                                        CUstream stream) {
  if (!copy.to_device())
    return absl::InvalidArgumentError("a copy between devices goes to the one that makes it");
  const ArenaTable& table = peers_.Contains(copy.source_arena()) ? peers_ : arenas_;
  absl::StatusOr<CUdeviceptr> source =
      table.Range(copy.source_arena(), copy.source_offset(), copy.size());
  if (!source.ok()) return source.status();
  if (copy.size() == 0) return absl::OkStatus();
  return ToStatus(driver_->cuMemcpyDtoDAsync(target, *source, copy.size(), stream),
                  "copying between devices");
}

void CudaDevice::Drain() {
  // Flush first: the poller knows only work that the device was given.
  regions_->Flush();
  poller_->Drain();
}

absl::StatusOr<KernelModule*> CudaDevice::FindModule(uint64_t module) {
  auto found = modules_.find(module);
  if (found == modules_.end()) {
    return absl::FailedPreconditionError(absl::StrCat("module ", module, " is not loaded"));
  }
  found->second.last_task = current_task_;
  may_print_ = may_print_ || found->second.may_print;
  return &found->second.kernels;
}

void CudaDevice::CheckAlive() {
  const CUresult result = driver_->cuStreamQuery(compute_.get());
  if (IsSticky(result)) poller_->Fault(result);
}

CUdeviceptr CudaDevice::CompletedWord() const {
  return status_page_.device_address() + offsetof(wire::StatusPage, completed_sequence);
}

void CudaDevice::RequireMark(CUresult result) {
  if (result != CUDA_SUCCESS) poller_->Fault(result);
}

void CudaDevice::WriteMark(CUstream stream, CUdeviceptr address, uint32_t mark) {
  RequireMark(driver_->cuStreamWriteValue32(stream, address, mark, CU_STREAM_WRITE_VALUE_DEFAULT));
}

}  // namespace stride::cuda
