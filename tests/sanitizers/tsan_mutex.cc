// Models the ordering of abseil's locks, and of the counts in its statuses, for the thread
// sanitizer. Debian's abseil is a shared library without the sanitizer, which therefore sees no
// lock and reports every access under an absl::Mutex as a race. The functions here replace the
// library's (a program's own symbols take precedence) and wrap them: a release happens before the
// next acquire. Only in the tsan preset. Conditions are evaluated inside the library, by whichever
// thread holds the lock: their reads are not checked.
#include <absl/status/status.h>
#include <absl/synchronization/blocking_counter.h>
#include <absl/synchronization/mutex.h>
#include <absl/synchronization/notification.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <type_traits>

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace {

// The library's function of that mangled name; members are called as functions of their object.
template <typename Function>
Function* InLibrary(const char* name) {
  void* symbol = dlsym(RTLD_NEXT, name);
  if (symbol == nullptr) {
    std::fprintf(stderr, "tsan_mutex: abseil has no %s; its version changed\n", name);
    std::abort();
  }
  return reinterpret_cast<Function*>(symbol);
}

using Of = void(void*);
using OfCondition = void(void*, const absl::Condition&);
using OfConditionUntil = bool(void*, const absl::Condition&, absl::Time);
using OfConditionFor = bool(void*, const absl::Condition&, absl::Duration);

// Releases the lock and acquires it again, like every wait.
template <typename Wait>
auto Waiting(void* mutex, Wait wait) {
  __tsan_release(mutex);
  if constexpr (std::is_void_v<decltype(wait())>) {
    wait();
    __tsan_acquire(mutex);
  } else {
    auto result = wait();
    __tsan_acquire(mutex);
    return result;
  }
}

void AcquireNotification(const absl::Notification* notification) {
  __tsan_acquire(const_cast<char*>(reinterpret_cast<const char*>(notification)) +
                 sizeof(absl::Mutex));
}

}  // namespace

// `library`: the library's own function, by the rest of its mangled name; the second form is for
// const members.
#define STRIDE_LIBRARY(Type, name) \
  static auto* const library = InLibrary<Type>("_ZN4absl7debian3" name)
#define STRIDE_LIBRARY_CONST(Type, name) \
  static auto* const library = InLibrary<Type>("_ZNK4absl7debian3" name)

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  STRIDE_LIBRARY(Of, "5Mutex4LockEv");
  library(this);
  __tsan_acquire(this);
}

void Mutex::Unlock() {
  STRIDE_LIBRARY(Of, "5Mutex6UnlockEv");
  __tsan_release(this);
  library(this);
}

bool Mutex::TryLock() {
  STRIDE_LIBRARY(bool(void*), "5Mutex7TryLockEv");
  bool locked = library(this);
  if (locked) __tsan_acquire(this);
  return locked;
}

void Mutex::ReaderLock() {
  STRIDE_LIBRARY(Of, "5Mutex10ReaderLockEv");
  library(this);
  __tsan_acquire(this);
}

void Mutex::ReaderUnlock() {
  STRIDE_LIBRARY(Of, "5Mutex12ReaderUnlockEv");
  __tsan_release(this);
  library(this);
}

bool Mutex::ReaderTryLock() {
  STRIDE_LIBRARY(bool(void*), "5Mutex13ReaderTryLockEv");
  bool locked = library(this);
  if (locked) __tsan_acquire(this);
  return locked;
}

void Mutex::LockWhen(const Condition& condition) {
  STRIDE_LIBRARY(OfCondition, "5Mutex8LockWhenERKNS0_9ConditionE");
  library(this, condition);
  __tsan_acquire(this);
}

bool Mutex::LockWhenWithTimeout(const Condition& condition, Duration timeout) {
  STRIDE_LIBRARY(OfConditionFor, "5Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  bool met = library(this, condition, timeout);
  __tsan_acquire(this);
  return met;
}

bool Mutex::LockWhenWithDeadline(const Condition& condition, Time deadline) {
  STRIDE_LIBRARY(OfConditionUntil, "5Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  bool met = library(this, condition, deadline);
  __tsan_acquire(this);
  return met;
}

void Mutex::Await(const Condition& condition) {
  STRIDE_LIBRARY(OfCondition, "5Mutex5AwaitERKNS0_9ConditionE");
  Waiting(this, [&] { library(this, condition); });
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  STRIDE_LIBRARY(OfConditionFor, "5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  return Waiting(this, [&] { return library(this, condition, timeout); });
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  STRIDE_LIBRARY(OfConditionUntil, "5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  return Waiting(this, [&] { return library(this, condition, deadline); });
}

void CondVar::Wait(Mutex* mutex) {
  STRIDE_LIBRARY(void(void*, Mutex*), "7CondVar4WaitEPNS0_5MutexE");
  Waiting(mutex, [&] { library(this, mutex); });
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  STRIDE_LIBRARY(bool(void*, Mutex*, Duration),
                 "7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  return Waiting(mutex, [&] { return library(this, mutex, timeout); });
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  STRIDE_LIBRARY(bool(void*, Mutex*, Time), "7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  return Waiting(mutex, [&] { return library(this, mutex, deadline); });
}

bool Condition::Eval() const {
  STRIDE_LIBRARY_CONST(bool(const void*), "9Condition4EvalEv");
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  bool met = library(this);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  return met;
}

// The flag of HasBeenNotified is read by inlined code and follows the mutex.
void Notification::Notify() {
  STRIDE_LIBRARY(Of, "12Notification6NotifyEv");
  __tsan_release(reinterpret_cast<char*>(this) + sizeof(Mutex));
  library(this);
}

void Notification::WaitForNotification() const {
  STRIDE_LIBRARY_CONST(void(const void*), "12Notification19WaitForNotificationEv");
  library(this);
  AcquireNotification(this);
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  STRIDE_LIBRARY_CONST(bool(const void*, Duration),
                       "12Notification30WaitForNotificationWithTimeoutENS0_8DurationE");
  bool notified = library(this, timeout);
  AcquireNotification(this);
  return notified;
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  STRIDE_LIBRARY_CONST(bool(const void*, Time),
                       "12Notification31WaitForNotificationWithDeadlineENS0_4TimeE");
  bool notified = library(this, deadline);
  AcquireNotification(this);
  return notified;
}

bool BlockingCounter::DecrementCount() {
  STRIDE_LIBRARY(bool(void*), "15BlockingCounter14DecrementCountEv");
  __tsan_release(this);
  return library(this);
}

void BlockingCounter::Wait() {
  STRIDE_LIBRARY(Of, "15BlockingCounter4WaitEv");
  library(this);
  __tsan_acquire(this);
}

// The last owner deletes data that others read before their release.
void Status::UnrefNonInlined(uintptr_t rep) {
  STRIDE_LIBRARY(void(uintptr_t), "6Status15UnrefNonInlinedEm");
  __tsan_release(reinterpret_cast<void*>(rep));
  __tsan_acquire(reinterpret_cast<void*>(rep));
  library(rep);
}

ABSL_NAMESPACE_END
}  // namespace absl
