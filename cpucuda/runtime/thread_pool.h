// A pool of threads that share a range of items.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace stride::cpucuda {

// One ParallelFor runs at a time; a second caller waits for the first. The body must not call
// ParallelFor again.
class ThreadPool {
 public:
  using Body = std::function<void(int64_t begin, int64_t end, int thread_index)>;

  // `num_threads` counts the calling thread, so 1 starts none.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls `body` on pieces of [0, num_items) of at most `grain` items, in no order, from up to
  // num_threads() threads at once, of which the caller is thread 0. Returns when every piece is
  // done. It does not wait for threads that have not woken by then: on a busy machine that takes
  // milliseconds.
  void ParallelFor(int64_t num_items, int64_t grain, const Body& body);

 private:
  void Serve(int thread_index);
  void Work(int thread_index);

  std::mutex call_mutex_;  // held for a whole ParallelFor
  std::mutex mutex_;       // guards the members below except next_item_
  std::condition_variable work_ready_;
  std::condition_variable work_done_;
  uint64_t generation_ = 0;
  bool open_ = false;    // whether a call has pieces that a thread may take
  int num_working_ = 0;  // threads that have joined the call, without the caller
  bool stopping_ = false;
  const Body* body_ = nullptr;
  int64_t num_items_ = 0;
  int64_t grain_ = 1;
  std::atomic<int64_t> next_item_{0};
  std::vector<std::thread> threads_;
};

}  // namespace stride::cpucuda
