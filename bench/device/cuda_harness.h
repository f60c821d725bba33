// The worker's CUDA device without a worker, and direct access to the driver for the baselines.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/memory_file.h"
#include "server/wire/worker.pb.h"
#include "server/worker/cuda/compile/cuda_compiler.h"
#include "server/worker/cuda/cuda_device.h"
#include "server/worker/cuda/driver/arena.h"
#include "server/worker/cuda/driver/driver.h"
#include "server/worker/cuda/driver/handles.h"

namespace stride::bench {

using Packet = google::protobuf::RepeatedPtrField<wire::Task>;

// Knows the last task that was reported, and the first failure. Ends the process when the device is
// lost.
class LastReport : public worker::Completions {
 public:
  void TaskDone(uint64_t sequence, const absl::Status& status, double run_seconds,
                bool more) override;
  void TasksCancelled(uint64_t, bool) override {}
  void CopyDone(uint64_t, const absl::Status&) override {}
  void Printed(uint64_t, const PrintedText&) override {}
  [[noreturn]] void Fatal(uint64_t sequence, const absl::Status& status,
                          bool context_lost) override;

  // Watches, so that no thread has to be woken. The first failure since the last call.
  absl::Status Await(uint64_t sequence);

 private:
  std::atomic<uint64_t> last_{0};
  std::mutex mutex_;
  absl::Status failure_;  // guarded by mutex_
};

// The first device of the machine; one thread. Ends the process when something fails.
class CudaHarness {
 public:
  // UNAVAILABLE, and why, where there is no device.
  static absl::StatusOr<std::unique_ptr<CudaHarness>> Start();

  const wire::DeviceDescription& description() const { return description_; }

  // Allocates device memory that tasks name by `arena`. The returned mapping belongs to this
  // process; the device has its own. RESOURCE_EXHAUSTED: too little memory.
  absl::StatusOr<cuda::ArenaMapping> CreateArena(uint64_t arena, uint64_t size);
  void DropArena(uint64_t arena);
  uint64_t NewId() { return ++id_; }

  // The module's number.
  uint64_t Load(const wire::Code& code);

  // As one packet from the daemon; returns when the last has been reported, with the first failure.
  absl::Status Run(Packet* tasks);

  // By the driver, on a stream of its own. `pattern` is repeated to fill so many bytes.
  void Fill(CUdeviceptr to, uint64_t bytes, std::string_view pattern);
  void Read(void* to, CUdeviceptr from, uint64_t bytes);
  void Copy(CUdeviceptr to, CUdeviceptr from, uint64_t bytes);  // enqueued
  void Synchronize();
  CUstream stream() const { return stream_.get(); }

 private:
  explicit CudaHarness(wire::DeviceDescription description);

  const wire::DeviceDescription description_;
  MemoryMap status_page_;
  LastReport reports_;
  cuda::CudaCompiler compiler_;
  std::shared_ptr<const cuda::Driver> driver_;
  cuda::CudaDevice device_;
  cuda::Stream stream_;
  uint64_t id_ = 0, sequence_ = 0;
};

}  // namespace stride::bench
