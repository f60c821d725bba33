#include "server/worker/cuda/region_copier.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/worker/cuda/driver/cuda_status.h"
#include "server/worker/cuda/driver/operand_bounds.h"

namespace stride::cuda {

RegionCopier::RegionCopier(const Driver& driver, const Context& context, CompletionPoller& poller,
                           Direction upload, Direction download)
    : driver_(driver), context_(context), poller_(poller), upload_(upload), download_(download) {
  thread_ = std::thread([this] { Run(); });
}

RegionCopier::~RegionCopier() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void RegionCopier::Push(std::function<void()> work) {
  absl::MutexLock lock(&mutex_);
  work_.push_back(std::move(work));
}

void RegionCopier::Map(uint64_t region, uint64_t size, UniqueFd fd) {
  auto held = std::make_shared<UniqueFd>(std::move(fd));
  Push([this, region, size, held] { regions_[region] = MapNow(size, *held); });
}

void RegionCopier::Unmap(uint64_t region) {
  Push([this, region] { UnmapNow(region); });
}

void RegionCopier::Enqueue(Copy copy) {
  Push([this, copy = std::move(copy)] { CopyNow(copy); });
}

void RegionCopier::Flush() {
  absl::MutexLock lock(&mutex_);
  auto flushed = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return work_.empty() && !busy_; };
  mutex_.Await(absl::Condition(&flushed));
}

void RegionCopier::Run() {
  const absl::Status current = context_.MakeCurrent();
  if (!current.ok()) poller_.Fault(CUDA_ERROR_INVALID_CONTEXT);
  auto due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !work_.empty() || stopping_; };
  for (;;) {
    std::function<void()> work;
    {
      absl::MutexLock lock(&mutex_);
      busy_ = false;
      mutex_.Await(absl::Condition(&due));
      if (work_.empty()) break;
      work = std::move(work_.front());
      work_.pop_front();
      busy_ = true;
    }
    work();
  }
  while (!regions_.empty()) UnmapNow(regions_.begin()->first);
}

RegionCopier::Mapped RegionCopier::MapNow(uint64_t size, const UniqueFd& fd) {
  Mapped mapped;
  mapped.status = CheckMemoryFile(fd.get(), size);
  if (!mapped.status.ok()) return mapped;
  absl::StatusOr<MemoryMap> map = MemoryMap::Map(fd.get(), size, /*writable=*/true);
  mapped.status = map.status();
  if (!map.ok()) return mapped;
  mapped.map = *std::move(map);
  absl::StatusOr<PinnedRegion> pinned = PinnedRegion::Register(driver_, mapped.map.data(), size);
  if (!pinned.ok()) {
    Require(driver_.cuStreamQuery(upload_.stream));
    mapped.status = absl::UnimplementedError(
        absl::StrCat("this device cannot reach the region: ", pinned.status().message()));
    return mapped;
  }
  mapped.pinned = *std::move(pinned);
  return mapped;
}

void RegionCopier::UnmapNow(uint64_t region) {
  // The daemon unmaps only unused regions; still, memory is never unpinned under a copy.
  for (CUstream stream : {upload_.stream, download_.stream})
    Require(driver_.cuStreamSynchronize(stream));
  regions_.erase(region);
}

void RegionCopier::CopyNow(const Copy& copy) {
  const Direction& direction = copy.to_device ? upload_ : download_;
  poller_.Begin(direction.lane, copy.id, copy.mark, "");
  absl::Status status = copy.status;
  if (status.ok()) status = Launch(copy, direction.stream);
  if (!status.ok()) Require(driver_.cuStreamQuery(direction.stream));
  const CUresult marked = driver_.cuStreamWriteValue32(direction.stream, direction.mark, copy.mark,
                                                       CU_STREAM_WRITE_VALUE_DEFAULT);
  // Without marks nothing would ever be reported.
  if (marked != CUDA_SUCCESS) poller_.Fault(marked);
  poller_.Launched(direction.lane, {std::move(status)});
}

absl::Status RegionCopier::Launch(const Copy& copy, CUstream stream) {
  auto found = regions_.find(copy.region);
  if (found == regions_.end())
    return absl::InvalidArgumentError(absl::StrCat("region ", copy.region, " is not mapped"));
  const Mapped& mapped = found->second;
  if (!mapped.status.ok()) return mapped.status;
  absl::Status status = CheckRange(copy.region_offset, copy.size, mapped.map.size());
  if (!status.ok() || copy.size == 0) return status;
  std::byte* host = mapped.map.data() + copy.region_offset;
  return ToStatus(copy.to_device ? driver_.cuMemcpyHtoDAsync(copy.address, host, copy.size, stream)
                                 : driver_.cuMemcpyDtoHAsync(host, copy.address, copy.size, stream),
                  copy.to_device ? "uploading from a region" : "downloading into a region");
}

void RegionCopier::Require(CUresult result) {
  if (IsSticky(result)) poller_.Fault(result);
}

}  // namespace stride::cuda
