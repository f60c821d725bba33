#include "server/api/run_server.h"

#include <algorithm>

#include "absl/time/time.h"
#include "server/api/compute_service.h"
#include "server/base/machine_limits.h"
#include "server/base/spin.h"

namespace stride::api {
namespace {

// They take a request and give it to the engine, which is short. gRPC has its pollers take turns:
// with two of them every second call meets a processor that has slept and has none of this in its
// caches, which costs a lone client's call a sixth of its time. One takes more calls than the
// engine does.
int NumTakers() { return std::clamp(AvailableThreads() / 64, 1, 4); }
int NumRepliers() { return std::clamp(AvailableThreads() / 4, 2, 8); }
// Calls that may arrive before the first of them has been looked at; more wait in gRPC.
constexpr int kAwaited = 64;
constexpr absl::Duration kCallWatch = absl::Microseconds(50);

}  // namespace

RunServer::RunServer(CallEnvironment* environment, scheduler::OperationService* operations,
                     session::TenantAccounts* accounts, ComputeServiceAdapter* service,
                     int max_waiting)
    : environment_(*environment),
      operations_(operations),
      accounts_(accounts),
      service_(service),
      waiting_(max_waiting),
      replies_(NumRepliers()) {}

RunServer::~RunServer() { Stop(); }

void RunServer::AddTo(grpc::ServerBuilder* builder) { queue_ = builder->AddCompletionQueue(); }

void RunServer::Start() {
  for (int i = 0; i < kAwaited; ++i) RunCall::Await(this);
  for (int i = 0; i < NumTakers(); ++i) threads_.emplace_back([this] { Loop(); });
}

void RunServer::Stop() {
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

bool RunServer::Next(void** tag, bool* ok) {
  using Status = grpc::CompletionQueue::NextStatus;
  Status status = Status::TIMEOUT;
  // Who calls often has his next call taken sooner than a thread wakes. One of us is enough.
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

void RunServer::Loop() {
  void* tag;
  bool ok;
  while (Next(&tag, &ok)) {
    auto* event = static_cast<RunCall::Event*>(tag);
    // Whatever becomes of the event, the call stays until it has been handled.
    const std::shared_ptr<RunCall> call = std::move(event->call);
    ((*call).*(event->handle))(ok);
    EventDone();
  }
}

void RunServer::Expect(RunCall::Event* event, std::shared_ptr<RunCall> call) {
  num_expected_.fetch_add(1, std::memory_order_relaxed);
  event->call = std::move(call);
}

void RunServer::Forget(RunCall::Event* event) {
  event->call.reset();
  EventDone();
}

void RunServer::EventDone() {
  if (num_expected_.fetch_sub(1, std::memory_order_acq_rel) == 1) all_done_.Notify();
}

}  // namespace stride::api
