// cuda::barrier, cuda::pipeline and the copies that complete on them. A copy is done at once by the
// thread that asks for it; a barrier or a pipeline of a block is a barrier of the whole block.
#pragma once

#include "stride_cuda_atomic.h"

namespace cuda {

template <size_t alignment>
struct aligned_size_t {
  static constexpr size_t align = alignment;
  size_t value;
  explicit STRIDE_METHOD aligned_size_t(size_t value) : value(value) {}
  STRIDE_METHOD operator size_t() const { return value; }
};

}  // namespace cuda

namespace __stride {
struct Nothing {
  STRIDE_METHOD void operator()() const {}
};
STRIDE_DEVICE void copy_bytes(void* to, const void* from, size_t bytes) {
  __builtin_memcpy(to, from, bytes);
}
// Each thread of a group copies its part, so that the copy costs what it would cost them.
template <class Group>
STRIDE_DEVICE void copy_as_group(const Group& group, void* to, const void* from, size_t bytes) {
  size_t threads = group.size(), part = (bytes / threads + 15) / 16 * 16;
  if (part == 0) part = 16;
  size_t begin = part * group.thread_rank();
  if (begin >= bytes) return;
  copy_bytes((char*)to + begin, (const char*)from + begin,
             bytes - begin < part ? bytes - begin : part);
}
}  // namespace __stride

namespace cuda {

template <thread_scope scope = thread_scope_system, class Completion = __stride::Nothing>
class barrier {
  ptrdiff_t expected_;
  Completion completion_;
  STRIDE_METHOD void meet() {
    if (expected_ != (ptrdiff_t)__stride::num_threads()) {
      __stride::fail(
          "the CPU device has cuda::barrier for all threads of the block alone: initialize it with "
          "their number",
          0, 0);
    }
    __stride_cut();
    if constexpr (!__is_same(Completion, __stride::Nothing)) {
      if (__stride_tid_linear() == 0) completion_();
      __stride_cut();
    }
  }

 public:
  struct arrival_token {};
  barrier() = default;
  STRIDE_METHOD barrier(ptrdiff_t expected, Completion completion = Completion())
      : expected_(expected), completion_(completion) {}
  barrier(const barrier&) = delete;
  static constexpr ptrdiff_t max() { return (1 << 20) - 1; }
  // Work is seen by the others once they have waited, and every wait is of the whole block.
  STRIDE_METHOD arrival_token arrive(ptrdiff_t = 1) { return arrival_token(); }
  STRIDE_METHOD void wait(arrival_token&&) { meet(); }
  STRIDE_METHOD void arrive_and_wait() { meet(); }
  friend STRIDE_METHOD void init(barrier* place, ptrdiff_t expected) {
    new (place) barrier(expected);
  }
  friend STRIDE_METHOD void init(barrier* place, ptrdiff_t expected, Completion completion) {
    new (place) barrier(expected, completion);
  }
};

template <thread_scope scope, unsigned char stages>
struct pipeline_shared_state {
  pipeline_shared_state() = default;
};
template <thread_scope scope>
class pipeline {
  static STRIDE_METHOD void meet() {
    if constexpr (scope != thread_scope_thread) __stride_cut();
  }

 public:
  // All threads of the block both produce and consume. None may write a stage that another reads.
  STRIDE_METHOD void producer_acquire() { meet(); }
  STRIDE_METHOD void producer_commit() {}
  STRIDE_METHOD void consumer_wait() { meet(); }
  STRIDE_METHOD void consumer_release() {}
  STRIDE_METHOD bool quit() { return true; }
};
STRIDE_DEVICE pipeline<thread_scope_thread> make_pipeline() {
  return pipeline<thread_scope_thread>();
}
template <class Group, thread_scope scope, unsigned char stages>
STRIDE_DEVICE pipeline<scope> make_pipeline(const Group&, pipeline_shared_state<scope, stages>*) {
  return pipeline<scope>();
}
template <unsigned char prior>
STRIDE_DEVICE void pipeline_consumer_wait_prior(pipeline<thread_scope_thread>&) {}

template <class Size, class Sync>
STRIDE_DEVICE void memcpy_async(void* to, const void* from, Size bytes, Sync&) {
  __stride::copy_bytes(to, from, bytes);
}
template <class Group, class Size, class Sync>
STRIDE_DEVICE void memcpy_async(const Group& group, void* to, const void* from, Size bytes, Sync&) {
  __stride::copy_as_group(group, to, from, bytes);
}

}  // namespace cuda

namespace std {
template <class Completion = __stride::Nothing>
using barrier = ::cuda::barrier<::cuda::thread_scope_system, Completion>;
}  // namespace std

// The same in functions of C (cuda_pipeline.h).
STRIDE_DEVICE void __pipeline_memcpy_async(void* to, const void* from, size_t bytes,
                                           size_t zeros = 0) {
  __builtin_memcpy(to, from, bytes - zeros);
  if (zeros != 0) __builtin_memset((char*)to + (bytes - zeros), 0, zeros);
}
STRIDE_DEVICE void __pipeline_commit() {}
STRIDE_DEVICE void __pipeline_wait_prior(size_t) {}
