// cuda::atomic, cuda::atomic_ref, their cuda::std and std forms, and fences. A scope changes
// nothing: all threads see one memory.
#pragma once

#include "stride_std.h"

namespace std {

enum memory_order : int {
  memory_order_relaxed = __ATOMIC_RELAXED,
  memory_order_consume = __ATOMIC_CONSUME,
  memory_order_acquire = __ATOMIC_ACQUIRE,
  memory_order_release = __ATOMIC_RELEASE,
  memory_order_acq_rel = __ATOMIC_ACQ_REL,
  memory_order_seq_cst = __ATOMIC_SEQ_CST
};
STRIDE_DEVICE void atomic_thread_fence(memory_order order) { __atomic_thread_fence(order); }
STRIDE_DEVICE void atomic_signal_fence(memory_order order) { __atomic_signal_fence(order); }

}  // namespace std

namespace __stride {

// A failed exchange stores nothing, so its order has no release in it.
STRIDE_METHOD constexpr std::memory_order failure_order(std::memory_order order) {
  return order == std::memory_order_acq_rel   ? std::memory_order_acquire
         : order == std::memory_order_release ? std::memory_order_relaxed
                                              : order;
}

// The operations on the T that `Owner::place()` gives.
template <class T, class Owner>
class AtomicOperations {
  static_assert(__is_trivially_copyable(T) && sizeof(T) <= 8,
                "an atomic value is trivially copyable and has at most 8 bytes");
  typedef std::memory_order Order;
  static constexpr Order kStrict = std::memory_order_seq_cst;
  typedef std::conditional_t<__is_pointer(T), ptrdiff_t, T> Step;
  STRIDE_METHOD T* at() const { return static_cast<const Owner*>(this)->place(); }
  // By exchange, for what the processor has no instruction.
  template <class F>
  STRIDE_METHOD T update(F f, Order order) const {
    T old = load(std::memory_order_relaxed);
    while (!compare_exchange_weak(old, f(old), order)) {
    }
    return old;
  }

 public:
  typedef T value_type;
  static constexpr bool is_always_lock_free = true;
  STRIDE_METHOD bool is_lock_free() const { return true; }
  STRIDE_METHOD T load(Order order = kStrict) const {
    T value;
    __atomic_load(at(), &value, order);
    return value;
  }
  STRIDE_METHOD void store(T value, Order order = kStrict) const {
    __atomic_store(at(), &value, order);
  }
  STRIDE_METHOD T exchange(T value, Order order = kStrict) const {
    T old;
    __atomic_exchange(at(), &value, &old, order);
    return old;
  }
  STRIDE_METHOD bool compare_exchange_strong(T& expected, T value, Order order = kStrict) const {
    return __atomic_compare_exchange(at(), &expected, &value, false, order, failure_order(order));
  }
  STRIDE_METHOD bool compare_exchange_strong(T& expected, T value, Order order, Order other) const {
    return __atomic_compare_exchange(at(), &expected, &value, false, order, other);
  }
  STRIDE_METHOD bool compare_exchange_weak(T& expected, T value, Order order = kStrict) const {
    return __atomic_compare_exchange(at(), &expected, &value, true, order, failure_order(order));
  }
  STRIDE_METHOD bool compare_exchange_weak(T& expected, T value, Order order, Order other) const {
    return __atomic_compare_exchange(at(), &expected, &value, true, order, other);
  }
  STRIDE_METHOD T fetch_add(Step value, Order order = kStrict) const {
    if constexpr (__is_pointer(T)) {
      return update([=](T old) { return old + value; }, order);
    } else {
      return __atomic_fetch_add(at(), value, order);
    }
  }
  STRIDE_METHOD T fetch_sub(Step value, Order order = kStrict) const {
    if constexpr (__is_pointer(T)) {
      return update([=](T old) { return old - value; }, order);
    } else {
      return __atomic_fetch_sub(at(), value, order);
    }
  }
  STRIDE_METHOD T fetch_and(T value, Order order = kStrict) const {
    return __atomic_fetch_and(at(), value, order);
  }
  STRIDE_METHOD T fetch_or(T value, Order order = kStrict) const {
    return __atomic_fetch_or(at(), value, order);
  }
  STRIDE_METHOD T fetch_xor(T value, Order order = kStrict) const {
    return __atomic_fetch_xor(at(), value, order);
  }
  STRIDE_METHOD T fetch_min(T value, Order order = kStrict) const {
    return update([=](T old) { return value < old ? value : old; }, order);
  }
  STRIDE_METHOD T fetch_max(T value, Order order = kStrict) const {
    return update([=](T old) { return old < value ? value : old; }, order);
  }
  STRIDE_METHOD void wait(T old, Order order = kStrict) const {
    while (load(order) == old) {
    }
  }
  STRIDE_METHOD void notify_one() const {}
  STRIDE_METHOD void notify_all() const {}
  STRIDE_METHOD operator T() const { return load(); }
  STRIDE_METHOD T operator++() const { return fetch_add(1) + 1; }
  STRIDE_METHOD T operator--() const { return fetch_sub(1) - 1; }
  STRIDE_METHOD T operator++(int) const { return fetch_add(1); }
  STRIDE_METHOD T operator--(int) const { return fetch_sub(1); }
  STRIDE_METHOD T operator+=(Step value) const { return fetch_add(value) + value; }
  STRIDE_METHOD T operator-=(Step value) const { return fetch_sub(value) - value; }
  STRIDE_METHOD T operator&=(T value) const { return fetch_and(value) & value; }
  STRIDE_METHOD T operator|=(T value) const { return fetch_or(value) | value; }
  STRIDE_METHOD T operator^=(T value) const { return fetch_xor(value) ^ value; }
};

}  // namespace __stride

namespace cuda {

enum thread_scope {
  thread_scope_system,
  thread_scope_device,
  thread_scope_block,
  thread_scope_thread
};
using ::std::memory_order;
using ::std::memory_order_acq_rel;
using ::std::memory_order_acquire;
using ::std::memory_order_consume;
using ::std::memory_order_relaxed;
using ::std::memory_order_release;
using ::std::memory_order_seq_cst;
STRIDE_DEVICE void atomic_thread_fence(memory_order order, thread_scope = thread_scope_system) {
  __atomic_thread_fence(order);
}

template <class T, thread_scope scope = thread_scope_system>
class atomic : public __stride::AtomicOperations<T, atomic<T, scope>> {
  alignas(sizeof(T) > alignof(T) ? sizeof(T) : alignof(T)) mutable T value_;

 public:
  // Without a constructor's work, so that it may be in shared memory.
  atomic() = default;
  STRIDE_EITHER constexpr atomic(T value) : value_(value) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;
  STRIDE_METHOD T operator=(T value) {
    this->store(value);
    return value;
  }
  STRIDE_METHOD T* place() const { return &value_; }
};
template <class T, thread_scope scope = thread_scope_system>
class atomic_ref : public __stride::AtomicOperations<T, atomic_ref<T, scope>> {
  T* place_;

 public:
  static constexpr size_t required_alignment = alignof(T);
  explicit STRIDE_METHOD atomic_ref(T& value) : place_(&value) {}
  atomic_ref(const atomic_ref&) = default;
  atomic_ref& operator=(const atomic_ref&) = delete;
  STRIDE_METHOD T operator=(T value) const {
    this->store(value);
    return value;
  }
  STRIDE_METHOD T* place() const { return place_; }
};
class atomic_flag {
  mutable unsigned set_;

 public:
  atomic_flag() = default;
  STRIDE_METHOD bool test_and_set(memory_order order = memory_order_seq_cst) {
    return __atomic_exchange_n(&set_, 1u, order) != 0;
  }
  STRIDE_METHOD void clear(memory_order order = memory_order_seq_cst) {
    __atomic_store_n(&set_, 0u, order);
  }
  STRIDE_METHOD bool test(memory_order order = memory_order_seq_cst) const {
    return __atomic_load_n(&set_, order) != 0;
  }
};

}  // namespace cuda

namespace std {
template <class T>
using atomic = ::cuda::atomic<T>;
template <class T>
using atomic_ref = ::cuda::atomic_ref<T>;
using ::cuda::atomic_flag;
typedef atomic<int> atomic_int;
typedef atomic<unsigned> atomic_uint;
typedef atomic<bool> atomic_bool;
}  // namespace std
