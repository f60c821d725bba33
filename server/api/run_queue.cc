#include "server/api/run_queue.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "server/base/machine_limits.h"
#include "server/base/spin.h"

namespace stride::api {
namespace {

// Threads that take a request and give it to the engine, which is short. gRPC rotates its pollers:
// with two of them every second call meets a processor that has slept and whose caches are cold,
// which costs a single client's call a sixth of its time. One thread takes more calls than the
// engine can process.
int NumTakers() { return std::clamp(AvailableThreads() / 64, 1, 4); }
int NumRepliers() { return std::clamp(AvailableThreads() / 4, 2, 8); }
constexpr absl::Duration kCallWatch = absl::Microseconds(50);

}  // namespace

RunQueue::RunQueue(int max_waiting) : waiting_(max_waiting), replies_(NumRepliers()) {}

RunQueue::~RunQueue() { Stop(); }

void RunQueue::AddTo(grpc::ServerBuilder* builder) { queue_ = builder->AddCompletionQueue(); }

void RunQueue::Start() {
  for (int i = 0; i < NumTakers(); ++i) threads_.emplace_back([this] { Loop(); });
}

void RunQueue::Stop() {
  if (queue_ == nullptr) return;
  if (!threads_.empty()) all_done_.WaitForNotification();
  queue_->Shutdown();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  void* tag;
  bool ok;
  while (queue_->Next(&tag, &ok)) {
  }
  queue_.reset();
  waiting_.Stop();
  replies_.Stop();
}

bool RunQueue::Next(void** tag, bool* ok) {
  using Status = grpc::CompletionQueue::NextStatus;
  Status status = Status::TIMEOUT;
  // A frequent caller's next call comes sooner than a thread wakes up. One polling thread suffices.
  if (!watched_.exchange(true, std::memory_order_acquire)) {
    SpinUntil(
        [&] {
          status = queue_->AsyncNext(tag, ok, gpr_inf_past(GPR_CLOCK_MONOTONIC));
          return status != Status::TIMEOUT;
        },
        kCallWatch);
    watched_.store(false, std::memory_order_release);
  }
  if (status == Status::TIMEOUT) return queue_->Next(tag, ok);
  return status == Status::GOT_EVENT;
}

void RunQueue::Loop() {
  void* tag;
  bool ok;
  while (Next(&tag, &ok)) {
    auto* event = static_cast<RunEvent*>(tag);
    // Keeps the call until the event is handled.
    const std::shared_ptr<void> call = std::move(event->call_);
    event->Handle(ok);
    EventDone();
  }
}

void RunQueue::Expect(RunEvent* event, std::shared_ptr<void> call) {
  num_expected_.fetch_add(1, std::memory_order_relaxed);
  event->call_ = std::move(call);
}

void RunQueue::Forget(RunEvent* event) {
  event->call_.reset();
  EventDone();
}

void RunQueue::EventDone() {
  if (num_expected_.fetch_sub(1, std::memory_order_acq_rel) == 1) all_done_.Notify();
}

}  // namespace stride::api
