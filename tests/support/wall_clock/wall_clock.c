// Replaces the C library's functions that read CLOCK_REALTIME or wait until a time of it. When
// preloaded, it takes the offset from a file that all processes of a test map. So a test steps
// their clock as `date --set` would: absolute waits see the step, as with the kernel.
#define _GNU_SOURCE
#include "tests/support/wall_clock/wall_clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { kNanosInSecond = 1000000000 };
// The interval at which a waiter checks the clock.
static const int64_t kSliceNanos = 20 * 1000 * 1000;

static _Atomic int64_t own_ahead;
static _Atomic int64_t* ahead = &own_ahead;

static int64_t (*real_syscall)(long, ...);
static int (*real_clock_gettime)(clockid_t, struct timespec*);
static int (*real_cond_clockwait)(pthread_cond_t*, pthread_mutex_t*, clockid_t,
                                  const struct timespec*);

static void* Next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found == NULL) abort();
  return found;
}

__attribute__((constructor)) static void Begin(void) {
  real_syscall = (int64_t(*)(long, ...))Next("syscall");
  real_clock_gettime = (int (*)(clockid_t, struct timespec*))Next("clock_gettime");
  real_cond_clockwait = (int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t,
                                 const struct timespec*))Next("pthread_cond_clockwait");
  const char* path = getenv(STRIDE_WALL_CLOCK_FILE);
  if (path == NULL) return;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) abort();
  void* mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped == MAP_FAILED) abort();
  ahead = (_Atomic int64_t*)mapped;
}

void stride_set_wall_clock(int64_t ahead_nanos) { atomic_store(&own_ahead, ahead_nanos); }

static int64_t Nanos(const struct timespec* time) {
  return time->tv_sec * (int64_t)kNanosInSecond + time->tv_nsec;
}

static struct timespec FromNanos(int64_t nanos) {
  struct timespec out = {nanos / kNanosInSecond, nanos % kNanosInSecond};
  if (out.tv_nsec < 0) {
    out.tv_nsec += kNanosInSecond;
    --out.tv_sec;
  }
  return out;
}

static int64_t MachineNanos(clockid_t clock) {
  struct timespec now;
  // Runs before Begin: other libraries' constructors.
  if (real_clock_gettime == NULL) Begin();
  real_clock_gettime(clock, &now);
  return Nanos(&now);
}

static int64_t WallNanos(void) { return MachineNanos(CLOCK_REALTIME) + atomic_load(ahead); }

int clock_gettime(clockid_t clock, struct timespec* out) {
  if (real_clock_gettime == NULL) Begin();
  int result = real_clock_gettime(clock, out);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    *out = FromNanos(Nanos(out) + atomic_load(ahead));
  return result;
}

int timespec_get(struct timespec* out, int base) {
  if (base != TIME_UTC) return 0;
  *out = FromNanos(WallNanos());
  return base;
}

int gettimeofday(struct timeval* restrict out, void* restrict zone) {
  (void)zone;
  struct timespec now = FromNanos(WallNanos());
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* out) {
  time_t now = WallNanos() / kNanosInSecond;
  if (out != NULL) *out = now;
  return now;
}

// The time of the next check of the wall clock, on the machine's monotonic clock.
static struct timespec NextLook(int64_t until_wall) {
  int64_t left = until_wall - WallNanos();
  if (left > kSliceNanos) left = kSliceNanos;
  if (left < 0) left = 0;
  return FromNanos(MachineNanos(CLOCK_MONOTONIC) + left);
}

// Between two checks the caller wakes spuriously, which POSIX allows: continuing the wait here
// would miss a signal that came in between.
static int WaitSlice(pthread_cond_t* cond, pthread_mutex_t* mutex, const struct timespec* until) {
  struct timespec look = NextLook(Nanos(until));
  int result = real_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &look);
  if (result != ETIMEDOUT) return result;
  return WallNanos() >= Nanos(until) ? ETIMEDOUT : 0;
}

// No caller here gives a condition another clock by its attributes.
int pthread_cond_timedwait(pthread_cond_t* restrict cond, pthread_mutex_t* restrict mutex,
                           const struct timespec* restrict until) {
  if (real_cond_clockwait == NULL) Begin();
  return WaitSlice(cond, mutex, until);
}

int pthread_cond_clockwait(pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  if (real_cond_clockwait == NULL) Begin();
  if (clock != CLOCK_REALTIME) return real_cond_clockwait(cond, mutex, clock, until);
  return WaitSlice(cond, mutex, until);
}

long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (int i = 0; i < 6; ++i) arguments[i] = va_arg(list, long);
  va_end(list);
  if (real_syscall == NULL) Begin();
  const long waits = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME;
  const struct timespec* until = (const struct timespec*)arguments[3];
  if (number != SYS_futex || until == NULL || (arguments[1] & ~FUTEX_PRIVATE_FLAG) != waits) {
    return real_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3],
                        arguments[4], arguments[5]);
  }
  for (;;) {
    struct timespec look = NextLook(Nanos(until));
    long result = real_syscall(SYS_futex, arguments[0], arguments[1] & ~FUTEX_CLOCK_REALTIME,
                               arguments[2], &look, arguments[4], arguments[5]);
    if (result == 0 || errno != ETIMEDOUT) return result;
    if (WallNanos() >= Nanos(until)) {
      errno = ETIMEDOUT;
      return -1;
    }
  }
}
