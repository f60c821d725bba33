#include "cpucuda/runtime/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace stride::cpucuda {
namespace {

TEST(ThreadPool, EachItemRunsOnceBeforeReturn) {
  ThreadPool pool(4);
  for (int call = 0; call < 20000; ++call) {
    const int64_t count = 1 + call % 9;
    // On this call's stack: an item that ran later would write to a dead frame.
    std::atomic<int> done[9] = {};
    pool.ParallelFor(count, 1, [&](int64_t begin, int64_t end, int thread) {
      ASSERT_LT(thread, 4);
      for (int64_t i = begin; i < end; ++i) ++done[i];
    });
    for (int64_t i = 0; i < 9; ++i) ASSERT_EQ(done[i], i < count ? 1 : 0) << call;
  }
}

TEST(ThreadPool, WokenThreadsTakeItems) {
  ThreadPool pool(3);
  // No item ends before every thread has one.
  std::atomic<int> arrived{0};
  pool.ParallelFor(3, 1, [&](int64_t, int64_t, int) {
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 3);
}

}  // namespace
}  // namespace stride::cpucuda
