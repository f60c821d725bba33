#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/worker/codegen/routine_fault.h"
#include "server/worker/cuda/driver/driver.h"
#include "server/worker/cuda/driver/handles.h"
#include "server/worker/cuda/print_capture.h"
#include "server/worker/runtime/device.h"
#include "server/worker/runtime/print_budget.h"

namespace stride::cuda {

// Reports completed work to the command loop. Each stream writes the mark of its latest completed
// work to a word of host memory, and one thread polls these words. Polling memory needs no driver
// call, so it neither slows the launching thread nor contends for its locks, and sees a mark within
// a microsecond. The same words are on the status page, where the daemon reads the device's
// progress after the process's death.
//
// A task's run time is measured on the host: from its submission, or the end of the previous task,
// to its mark. So gaps in which the device waits for a late launch count as run time of that task.
// This saves two event records per task.
class CompletionPoller {
 public:
  enum Lane { kCompute, kUpload, kDownload, kRegionUpload, kRegionDownload, kNumLanes };
  struct Watch {
    CUstream stream = nullptr;
    const std::atomic<uint32_t>* mark = nullptr;  // written by the stream
  };

  // All arguments must outlive the poller. `capture` reads the text that kernels print; null: none.
  // `heartbeat` is incremented while the device works: when the command loop loads or unloads a
  // module, the driver blocks it until a kernel ends, and the daemon must not take that for a hung
  // process.
  CompletionPoller(const Driver& driver, const Context& context, worker::Completions& completions,
                   std::array<Watch, kNumLanes> lanes, std::atomic<uint64_t>& heartbeat,
                   PrintCapture* capture = nullptr);
  // Call Drain before.
  ~CompletionPoller();

  // One thread per lane: the command loop's, or RegionCopier's. Call Begin before the work's first
  // launch, and Launched after the write of its mark was enqueued. `statuses` has one entry for
  // each work of the last Begin: the result of its launches. It is reported when the mark arrives,
  // so that reports keep the order of submission. `faults` belong to the last work: the device has
  // written them before the mark, and they are read before the report. `prints`, also the last
  // work's, was recorded after launches that may print: their text is reported before the work.
  struct Work {
    uint64_t id = 0;
    uint32_t mark = 0;
    std::string label;
  };
  void Begin(Lane lane, absl::Span<Work> work);  // takes their labels
  void Begin(Lane lane, uint64_t id, uint32_t mark, std::string label);
  struct Faults {
    absl::Span<const codegen::RoutineFault> places;
    // Prefix of each fault's message; null: none.
    std::shared_ptr<const std::vector<std::string>> prefixes;
  };
  void Launched(Lane lane, absl::Span<const absl::Status> statuses, Faults faults,
                std::shared_ptr<const Event> prints);
  void Launched(Lane lane, absl::Span<const absl::Status> statuses) {
    Launched(lane, statuses, {}, nullptr);
  }

  // Whether the work with this mark, and all earlier work in its lane, has ended.
  bool HasEnded(Lane lane, uint32_t mark) const;

  // Blocks until all begun work has been reported.
  void Drain();

  // The device is lost. The poller's thread names the task at fault, the first without its mark,
  // and ends the process.
  [[noreturn]] void Fault(CUresult result);

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    uint64_t id = 0;
    uint32_t mark = 0;
    std::string label;
    Clock::time_point begun;
    bool launched = false;
    absl::Status status;
    Faults faults;
    std::shared_ptr<const Event> prints;
  };
  struct Finished {
    Lane lane;
    Entry entry;
    double seconds;
  };

  void Run();
  // Moves completed work out of the lanes; returns the number of works in flight.
  size_t Collect(std::vector<Finished>* finished);
  // Whether anything happened since the last call. Lock-free, since it is polled.
  bool Changed();
  static absl::Status FirstFault(const Faults& faults);
  void Report(const std::vector<Finished>& finished);
  // Reports text that the work printed.
  void ReportPrinted(const Entry& entry);
  // Sleeps until there is work; false when the poller ends.
  bool AwaitWork();
  // Waits a little, the longer the more time has passed since the last end.
  void Pause(Clock::duration idle);
  void CheckDevice();
  [[noreturn]] void EndProcess(CUresult result);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsDrained() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !HasWork() && !reporting_; }

  const Driver& driver_;
  const Context& context_;
  worker::Completions& completions_;
  const std::array<Watch, kNumLanes> watches_;
  std::atomic<uint64_t>& heartbeat_;
  PrintCapture* const capture_;
  std::atomic<int> fault_{CUDA_SUCCESS};
  std::atomic<uint32_t> num_calls_{0};  // number of Begin and Launched calls

  absl::Mutex mutex_;
  absl::CondVar wake_;
  std::array<std::deque<Entry>, kNumLanes> lanes_ ABSL_GUARDED_BY(mutex_);
  bool reporting_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  // Used by the poller's thread alone.
  worker::PrintBudget print_budget_;
  uint32_t seen_calls_ = 0;
  std::array<uint32_t, kNumLanes> seen_marks_{};
  std::array<Clock::time_point, kNumLanes> last_end_;
  std::thread thread_;
};

}  // namespace stride::cuda
