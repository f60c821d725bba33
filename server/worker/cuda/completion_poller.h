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

// Tells the command loop what has ended. Each stream writes the mark of the work it has just
// finished to a word of host memory; one thread watches these words. Watching memory costs no
// driver call, so it neither slows the launching thread nor waits for its locks, and is seen within
// a microsecond. The same words, on the status page, tell the daemon how far the device came when
// the process is gone.
//
// A task's run time is taken on the host: from its submission, or the end of the task before it, to
// its mark. That counts the gaps in which a device waits for its next launch as run time of the
// task launched late, and spares two event records a task.
class CompletionPoller {
 public:
  enum Lane { kCompute, kUpload, kDownload, kRegionUpload, kRegionDownload, kNumLanes };
  struct Watch {
    CUstream stream = nullptr;
    const std::atomic<uint32_t>* mark = nullptr;  // written by the stream
  };

  // Everything given must outlive the poller. `capture` reads what kernels print; null: nothing
  // does. `heartbeat` moves while the device works: the driver
  // holds the command loop until a kernel ends when it loads or unloads a module meanwhile, and the
  // daemon must not take that for a process that hangs.
  CompletionPoller(const Driver& driver, const Context& context, worker::Completions& completions,
                   std::array<Watch, kNumLanes> lanes, std::atomic<uint64_t>& heartbeat,
                   PrintCapture* capture = nullptr);
  // Call Drain before.
  ~CompletionPoller();

  // One thread a lane: the command loop's, or RegionCopier's. Begin comes before the first launch
  // of the work, Launched after the write of its mark was enqueued. `statuses`, one for each work
  // that was begun last, are what the launches came to; each is reported when its mark arrives, so
  // that reports keep the order of submission. `faults`, the last work's, have by then what the
  // device found wrong with the data; they are read before the work is reported. `prints`, the last
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
    // What each is told with; none: as it is.
    std::shared_ptr<const std::vector<std::string>> prefixes;
  };
  void Launched(Lane lane, absl::Span<const absl::Status> statuses, Faults faults,
                std::shared_ptr<const Event> prints);
  void Launched(Lane lane, absl::Span<const absl::Status> statuses) {
    Launched(lane, statuses, {}, nullptr);
  }

  // Whether the work with this mark, and all before it in its lane, has ended.
  bool HasEnded(Lane lane, uint32_t mark) const;

  // Blocks until all that was begun has been reported.
  void Drain();

  // The device is lost. The poller's thread names the task at fault, the first whose mark is
  // missing, and ends the process.
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
  // Moves what has ended out of the lanes; how much is under way still.
  size_t Collect(std::vector<Finished>* finished);
  // Whether anything happened since the last call of this; without a lock, since it is asked all
  // the time.
  bool Changed();
  static absl::Status FirstFault(const Faults& faults);
  void Report(const std::vector<Finished>& finished);
  // Text that the work printed.
  void ReportPrinted(const Entry& entry);
  // Sleeps until there is work; false when the poller ends.
  bool AwaitWork();
  // Waits a little, the longer the more time has passed since something last ended.
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
  std::atomic<uint32_t> num_calls_{0};  // of Begin and Launched

  absl::Mutex mutex_;
  absl::CondVar wake_;
  std::array<std::deque<Entry>, kNumLanes> lanes_ ABSL_GUARDED_BY(mutex_);
  bool reporting_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  // Of the poller's thread alone.
  worker::PrintBudget print_budget_;
  uint32_t seen_calls_ = 0;
  std::array<uint32_t, kNumLanes> seen_marks_{};
  std::array<Clock::time_point, kNumLanes> last_end_;
  std::thread thread_;
};

}  // namespace stride::cuda
