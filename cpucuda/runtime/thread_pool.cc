#include "cpucuda/runtime/thread_pool.h"

#include <algorithm>

namespace stride::cpucuda {

ThreadPool::ThreadPool(int num_threads) {
  for (int i = 1; i < num_threads; ++i) threads_.emplace_back([this, i] { Serve(i); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  work_ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::ParallelFor(int64_t num_items, int64_t grain, const Body& body) {
  if (num_items <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  std::lock_guard<std::mutex> call(call_mutex_);
  if (threads_.empty() || num_items <= grain) {
    for (int64_t begin = 0; begin < num_items; begin += grain)
      body(begin, std::min(begin + grain, num_items), 0);
    return;
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    body_ = &body;
    num_items_ = num_items;
    grain_ = grain;
    next_item_.store(0, std::memory_order_relaxed);
    open_ = true;
    ++generation_;
  }
  work_ready_.notify_all();
  Work(0);
  std::unique_lock<std::mutex> lock(mutex_);
  open_ = false;
  work_done_.wait(lock, [this] { return num_working_ == 0; });
}

void ThreadPool::Work(int thread_index) {
  for (;;) {
    int64_t begin = next_item_.fetch_add(grain_, std::memory_order_relaxed);
    if (begin >= num_items_) return;
    (*body_)(begin, std::min(begin + grain_, num_items_), thread_index);
  }
}

void ThreadPool::Serve(int thread_index) {
  uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      work_ready_.wait(lock, [&] { return stopping_ || (open_ && generation_ != seen); });
      if (stopping_) return;
      seen = generation_;
      ++num_working_;
    }
    Work(thread_index);
    std::lock_guard<std::mutex> lock(mutex_);
    if (--num_working_ == 0) work_done_.notify_one();
  }
}

}  // namespace stride::cpucuda
