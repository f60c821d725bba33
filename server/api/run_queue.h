#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <grpcpp/completion_queue.h>
#include <grpcpp/server_builder.h>

#include "absl/synchronization/notification.h"
#include "server/base/executor.h"

namespace stride::api {

// An event of a call, whose address is its tag in the completion queue.
class RunEvent {
 public:
  virtual ~RunEvent() = default;
  // Runs on a thread of the queue. `ok` is false if the server has shut down or the client is gone.
  virtual void Handle(bool ok) = 0;

 private:
  friend class RunQueue;
  std::shared_ptr<void> call_;  // keeps the call while the event is pending
};

// The completion queue of ComputeService.Run and its threads. Thread-safe after Start.
class RunQueue {
 public:
  // `max_waiting`: threads for calls that wait.
  explicit RunQueue(int max_waiting);
  ~RunQueue();

  // To be called before the server is built.
  void AddTo(grpc::ServerBuilder* builder);
  // To be called once the server is built and calls expect events.
  void Start();
  // To be called once the server has shut down, which ends every call. Waits for the last event.
  void Stop();

  grpc::ServerCompletionQueue* queue() const { return queue_.get(); }
  // Registers `event`, which keeps `call` until it is handled.
  void Expect(RunEvent* event, std::shared_ptr<void> call);
  // Withdraws an event that will not come.
  void Forget(RunEvent* event);

  // Threads of calls that wait: for bytes, for a tenant's upload rate, for a plan.
  Executor& waiting() { return waiting_; }
  // Threads that reply while many operations run.
  Executor& replies() { return replies_; }

  void OperationBegins() { num_running_.fetch_add(1, std::memory_order_relaxed); }
  // Returns the number of operations in flight, the ended one included.
  int OperationEnds() { return num_running_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  void Loop();
  // Waits for the next event; false at the end.
  bool Next(void** tag, bool* ok);
  void EventDone();

  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::vector<std::thread> threads_;
  Executor waiting_;
  Executor replies_;
  std::atomic<bool> watched_{false};  // a thread polls for events without sleeping
  std::atomic<int> num_running_{0};   // operations in flight
  // Pending events. Some are pending until the server has shut down, so that it is zero once only.
  std::atomic<int64_t> num_expected_{0};
  absl::Notification all_done_;
};

}  // namespace stride::api
