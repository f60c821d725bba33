#include "bench/device/cuda_harness.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "bench/device/check.h"
#include "server/wire/status_page.h"
#include "server/worker/cuda/device_list.h"
#include "server/worker/cuda/driver/cuda_status.h"

namespace stride::bench {
namespace {

void CheckDriver(CUresult result, std::string_view doing) { Check(cuda::ToStatus(result, doing)); }

}  // namespace

void LastReport::TaskDone(uint64_t sequence, const absl::Status& status, double, bool) {
  if (!status.ok()) {
    const std::lock_guard lock(mutex_);
    failure_.Update(status);
  }
  last_.store(sequence, std::memory_order_release);
}

// Called on the device's threads, which no caller may join, so that it exits the process.
void LastReport::Fatal(uint64_t sequence, const absl::Status& status, bool) {
  std::fprintf(stderr, "%s: task %llu: %s\n", program_invocation_short_name,
               static_cast<unsigned long long>(sequence), status.ToString().c_str());
  std::_Exit(1);
}

absl::Status LastReport::Await(uint64_t sequence) {
  while (last_.load(std::memory_order_acquire) < sequence) std::this_thread::yield();
  const std::lock_guard lock(mutex_);
  return std::exchange(failure_, absl::OkStatus());
}

absl::StatusOr<std::unique_ptr<CudaHarness>> CudaHarness::Start() {
  const wire::DeviceList list = cuda::ListDevices();
  if (list.devices_size() == 0) return absl::UnavailableError(list.reason());
  return std::unique_ptr<CudaHarness>(new CudaHarness(list.devices(0)));
}

CudaHarness::CudaHarness(wire::DeviceDescription description)
    : description_(std::move(description)) {
  const UniqueFd page = Expect(CreateMemoryFile("status", wire::kStatusPageBytes));
  status_page_ = Expect(MemoryMap::Map(page.get(), wire::kStatusPageBytes, true));
  worker::Device::Environment environment;
  environment.device_index = description_.index();
  environment.status_page = reinterpret_cast<wire::StatusPage*>(status_page_.data());
  environment.completions = &reports_;
  Check(device_.Start(environment));
  driver_ = Expect(cuda::Driver::Load());
  stream_ = Expect(cuda::Stream::Create(*driver_));
}

absl::StatusOr<cuda::ArenaMapping> CudaHarness::CreateArena(uint64_t arena, uint64_t size) {
  const uint64_t unit = static_cast<uint64_t>(description_.arena_granularity_bytes());
  size = (size + unit - 1) / unit * unit;
  absl::StatusOr<UniqueFd> fd = device_.CreateArena(arena, size);
  if (!fd.ok()) return fd.status();
  CUdevice device = 0;
  CheckDriver(driver_->cuDeviceGet(&device, description_.index()), "opening the device");
  return cuda::ArenaMapping::Import(*driver_, device, size, *fd);
}

void CudaHarness::DropArena(uint64_t arena) { Check(device_.UnmapArena(arena)); }

uint64_t CudaHarness::Load(const wire::Code& code) {
  const auto compiled = Expect(compiler_.Compile(description_.target(), code));
  wire::LoadModule load;
  load.set_module(NewId());
  load.set_size(compiled.object.size());
  *load.mutable_description() = compiled.description;
  UniqueFd object = Expect(CreateSealedCopy("object", compiled.object));
  Check(device_.LoadModule(load.module(), std::move(object), load).status());
  return load.module();
}

absl::Status CudaHarness::Run(Packet* tasks) {
  for (wire::Task& task : *tasks) task.set_sequence(++sequence_);
  device_.EnqueueAll(*tasks);
  return reports_.Await(sequence_);
}

void CudaHarness::Fill(CUdeviceptr to, uint64_t bytes, std::string_view pattern) {
  uint64_t done = std::min<uint64_t>(bytes, pattern.size());
  CheckDriver(driver_->cuMemcpyHtoDAsync(to, pattern.data(), done, stream()), "uploading");
  // Whole patterns double, so that each begins where one ends.
  for (uint64_t next; done < bytes; done += next) {
    next = std::min(done, bytes - done);
    Copy(to + done, to, next);
  }
  Synchronize();
}

void CudaHarness::Read(void* to, CUdeviceptr from, uint64_t bytes) {
  CheckDriver(driver_->cuMemcpyDtoHAsync(to, from, bytes, stream()), "downloading");
  Synchronize();
}

void CudaHarness::Copy(CUdeviceptr to, CUdeviceptr from, uint64_t bytes) {
  CheckDriver(driver_->cuMemcpyDtoDAsync(to, from, bytes, stream()), "copying");
}

void CudaHarness::Synchronize() {
  CheckDriver(driver_->cuStreamSynchronize(stream()), "waiting for the stream");
}

}  // namespace stride::bench
