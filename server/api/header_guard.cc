#include "server/api/header_guard.h"

#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/api/header_blocks.h"
#include "server/api/held_bytes.h"
#include "server/api/log.h"
#include "server/api/reset_budget.h"
#include "server/api/stream_bytes.h"
#include "server/base/environment.h"

#ifdef STRIDE_PORTABLE
// gRPC and OpenSSL are archives: the linker redirects their calls to these functions (--wrap).
#define STRIDE_OURS(name) __wrap_##name
extern "C" int __real_close(int);
extern "C" ssize_t __real_recvmsg(int, msghdr*, int);
extern "C" ssize_t __real_sendmsg(int, const msghdr*, int);
extern "C" int __real_SSL_read(SSL*, void*, int);
extern "C" int __real_SSL_write(SSL*, const void*, int);
#else
// The executable's functions take precedence over those of shared libraries.
#define STRIDE_OURS(name) name
#endif

namespace stride::api {
namespace {

constexpr absl::Duration kLogInterval = absl::Seconds(10);
constexpr std::chrono::seconds kMessageTime(60);
// How often a connection's messages are checked for late ones.
constexpr std::chrono::seconds kLateInterval(1);
// Smaller changes of a connection's bytes are not added to the total of all connections.
constexpr int64_t kGrain = 16 << 10;

std::atomic<int64_t> num_ended{0};

// Why connections are ended. An attacker reconnects at once, so the log gets a line only now and
// then.
class Reason {
 public:
  explicit Reason(const char* text) : text_(text) {}

  void Log(const std::string& peer) {
    ++num_ended;
    std::lock_guard lock(mutex_);
    ++total_;
    if (Now() < next_) return;
    next_ = Now() + kLogInterval;
    LogWarning(absl::StrCat("connection ended: ", text_, ", from ", peer, "; ", total_,
                            " such connections since the start"));
  }

 private:
  const char* const text_;
  std::mutex mutex_;
  int64_t total_ = 0;
  SteadyTime next_ = SteadyTime::InfinitePast();
};

// These are never destroyed: gRPC's threads may read until the process ends.
Reason& Headers() {
  static Reason& reason = *new Reason("headers without end");
  return reason;
}

Reason& Resets() {
  static Reason& reason = *new Reason("too many cancelled calls");
  return reason;
}

Reason& Messages() {
  static Reason& reason =
      *new Reason("too many bytes of messages that are not complete or not taken");
  return reason;
}

Reason& Lateness() {
  static Reason& reason = *new Reason("a message was not complete in its time");
  return reason;
}

Reason& Streams() {
  static Reason& reason = *new Reason("too many calls at once");
  return reason;
}

HeldBytes& Held() {
  static HeldBytes& held = *new HeldBytes();
  return held;
}

std::atomic<std::chrono::steady_clock::duration> message_time{kMessageTime};

ResetBudget& Budget() {
  static ResetBudget& budget = *new ResetBudget();
  return budget;
}

// gRPC reads a connection on one thread at a time, and writes on one, so the lock is rarely
// contended.
class Watched {
 public:
  // `peer`: the account of its bytes. `account`: the account of its resets.
  Watched(std::string peer, std::string account)
      : peer_(std::move(peer)), account_(std::move(account)) {}
  ~Watched() { Over(); }

  // Counts received bytes. Returns false if the connection must end.
  bool Take(const void* bytes, size_t size) {
    const auto now = std::chrono::steady_clock::now();
    std::lock_guard lock(mutex_);
    if (ended_) return false;
    Reason* reason = nullptr;
    const auto* begin = static_cast<const uint8_t*>(bytes);
    if (!blocks_.Take(begin, size)) reason = &Headers();
    if (!streams_.Received(begin, size, now)) reason = &Streams();
    uint64_t resets = blocks_.TakeResets();
    if (resets > 0 && !Budget().Take(account_, resets, Now())) reason = &Resets();
    if (!Account()) reason = &Messages();
    if (now >= next_look_) {
      next_look_ = now + kLateInterval;
      if (streams_.Late(now, message_time)) reason = &Lateness();
    }
    if (reason == nullptr) return true;
    ended_ = true;
    reason->Log(peer_);
    Release();
    return false;
  }

  // Counts sent bytes.
  void Sent(const void* bytes, size_t size) {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    streams_.Sent(static_cast<const uint8_t*>(bytes), size);
    Account();
  }

  // The connection is over: gRPC holds none of its bytes, and no more will arrive.
  void Over() {
    std::lock_guard lock(mutex_);
    ended_ = true;
    Release();
  }

 private:
  bool Account() {
    const int64_t held = streams_.held();
    if (std::abs(held - told_) < kGrain) return true;
    return Held().Change(peer_, std::exchange(told_, held), held);
  }
  void Release() {
    if (told_ != 0) Held().Change(peer_, std::exchange(told_, 0), 0);
  }

  const std::string peer_, account_;
  std::mutex mutex_;
  HeaderBlocks blocks_;
  StreamBytes streams_;
  int64_t told_ = 0;  // bytes added to the total so far
  StreamBytes::Time next_look_;
  bool ended_ = false;
};

// Clients' connections by descriptor, until `close`.
class Descriptors {
 public:
  struct Entry {
    std::shared_ptr<Watched> watched;              // null: encrypted
    std::shared_ptr<const std::string> encrypted;  // peer of an encrypted connection
  };

  void Add(int fd, Entry entry) {
    absl::WriterMutexLock lock(&mutex_);
    std::swap(entries_[fd], entry);
  }

  void Remove(int fd) {
    Entry removed;  // destroyed without the lock
    {
      absl::ReaderMutexLock lock(&mutex_);
      if (!entries_.contains(fd)) return;
    }
    absl::WriterMutexLock lock(&mutex_);
    std::swap(removed, entries_[fd]);
    entries_.erase(fd);
  }

  // Empty: not watched.
  Entry Find(int fd) const {
    absl::ReaderMutexLock lock(&mutex_);
    auto it = entries_.find(fd);
    return it == entries_.end() ? Entry{} : it->second;
  }

 private:
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<int, Entry> entries_;
};

// Never destroyed: gRPC's threads may read until the process ends.
Descriptors& Plain() {
  static Descriptors& descriptors = *new Descriptors();
  return descriptors;
}

// Calls look(bytes, size) for each part of the first `size` bytes of a message, until it returns
// false.
template <typename Look>
bool EachPart(const msghdr& message, size_t size, Look look) {
  for (size_t i = 0; i < message.msg_iovlen && size > 0; ++i) {
    const iovec& part = message.msg_iov[i];
    size_t taken = std::min(part.iov_len, size);
    if (!look(part.iov_base, taken)) return false;
    size -= taken;
  }
  return true;
}

// The peer of the encrypted connection that this thread has read from last. gRPC decrypts bytes on
// the thread that read them.
thread_local std::shared_ptr<const std::string> encrypted_peer;

void Forget(void*, void* watched, CRYPTO_EX_DATA*, int, long, void*) {  // NOLINT: OpenSSL's type
  delete static_cast<Watched*>(watched);
}

int Index() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, Forget);
  return index;
}

// Counts received bytes of a TLS connection, whose state is destroyed with it. False: it must end.
bool FineEncrypted(SSL* ssl, const void* bytes, size_t size) {
  auto* watched = static_cast<Watched*>(SSL_get_ex_data(ssl, Index()));
  if (watched == nullptr) {
    static std::atomic<uint64_t> number{0};
    auto fresh =
        std::make_unique<Watched>(encrypted_peer == nullptr ? "a TLS connection" : *encrypted_peer,
                                  absl::StrCat("TLS ", ++number));
    if (SSL_set_ex_data(ssl, Index(), fresh.get()) != 1) return false;
    watched = fresh.release();
  }
  return watched->Take(bytes, size);
}

int NextClose(int fd) {
#ifdef STRIDE_PORTABLE
  return __real_close(fd);
#else
  static const auto next = reinterpret_cast<decltype(&close)>(dlsym(RTLD_NEXT, "close"));
  return next(fd);
#endif
}

ssize_t NextRecvmsg(int fd, msghdr* message, int flags) {
#ifdef STRIDE_PORTABLE
  return __real_recvmsg(fd, message, flags);
#else
  static const auto next = reinterpret_cast<decltype(&recvmsg)>(dlsym(RTLD_NEXT, "recvmsg"));
  return next(fd, message, flags);
#endif
}

ssize_t NextSendmsg(int fd, const msghdr* message, int flags) {
#ifdef STRIDE_PORTABLE
  return __real_sendmsg(fd, message, flags);
#else
  static const auto next = reinterpret_cast<decltype(&sendmsg)>(dlsym(RTLD_NEXT, "sendmsg"));
  return next(fd, message, flags);
#endif
}

int NextSslWrite(SSL* ssl, const void* buffer, int size) {
#ifdef STRIDE_PORTABLE
  return __real_SSL_write(ssl, buffer, size);
#else
  static const auto next = reinterpret_cast<decltype(&SSL_write)>(dlsym(RTLD_NEXT, "SSL_write"));
  return next(ssl, buffer, size);
#endif
}

int NextSslRead(SSL* ssl, void* buffer, int size) {
#ifdef STRIDE_PORTABLE
  return __real_SSL_read(ssl, buffer, size);
#else
  static const auto next = reinterpret_cast<decltype(&SSL_read)>(dlsym(RTLD_NEXT, "SSL_read"));
  return next(ssl, buffer, size);
#endif
}

}  // namespace

absl::Status HeaderGuard::Check() {
#ifndef STRIDE_PORTABLE
  if (dlsym(RTLD_DEFAULT, "close") != reinterpret_cast<void*>(&close) ||
      dlsym(RTLD_DEFAULT, "recvmsg") != reinterpret_cast<void*>(&recvmsg) ||
      dlsym(RTLD_DEFAULT, "SSL_read") != reinterpret_cast<void*>(&SSL_read) ||
      dlsym(RTLD_DEFAULT, "sendmsg") != reinterpret_cast<void*>(&sendmsg) ||
      dlsym(RTLD_DEFAULT, "SSL_write") != reinterpret_cast<void*>(&SSL_write)) {
    return absl::FailedPreconditionError(
        "bytes of clients cannot be checked: gRPC would find other functions for reading and "
        "writing than this program's");
  }
#endif
  return absl::OkStatus();
}

void HeaderGuard::Watch(int fd, const std::string& peer) {
  Plain().Add(fd, {std::make_shared<Watched>(peer, peer), nullptr});
}

void HeaderGuard::WatchEncrypted(int fd, const std::string& peer) {
  Plain().Add(fd, {nullptr, std::make_shared<const std::string>(peer)});
}

void HeaderGuard::SetMessageTime(absl::Duration time) {
  message_time = absl::ToChronoNanoseconds(time);
}

int64_t HeaderGuard::held_bytes() { return Held().total(); }

void HeaderGuard::SetResetBurst(int burst) { Budget().set_burst(burst); }

int64_t HeaderGuard::ended() { return num_ended; }

}  // namespace stride::api

extern "C" {

ABSL_ATTRIBUTE_NOINLINE __attribute__((visibility("default"))) int STRIDE_OURS(close)(int fd) {
  // Before the descriptor number can belong to another connection.
  stride::api::Plain().Remove(fd);
  return stride::api::NextClose(fd);
}

ABSL_ATTRIBUTE_NOINLINE __attribute__((visibility("default"))) ssize_t STRIDE_OURS(recvmsg)(
    int fd, msghdr* message, int flags) {
  using namespace stride::api;
  ssize_t size = NextRecvmsg(fd, message, flags);
  if ((flags & (MSG_PEEK | MSG_ERRQUEUE)) != 0) return size;
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return size;
  const int error = errno;
  Descriptors::Entry entry = Plain().Find(fd);
  errno = error;
  if (size > 0 && entry.encrypted != nullptr) encrypted_peer = std::move(entry.encrypted);
  if (entry.watched == nullptr) return size;
  if (size <= 0) {
    entry.watched->Over();
    errno = error;
    return size;
  }
  auto look = [&](const void* bytes, size_t count) { return entry.watched->Take(bytes, count); };
  if (EachPart(*message, static_cast<size_t>(size), look)) return size;
  // gRPC closes it, but may take its time.
  shutdown(fd, SHUT_RDWR);
  errno = ECONNRESET;
  return -1;
}

ABSL_ATTRIBUTE_NOINLINE __attribute__((visibility("default"))) ssize_t STRIDE_OURS(sendmsg)(
    int fd, const msghdr* message, int flags) {
  using namespace stride::api;
  const ssize_t size = NextSendmsg(fd, message, flags);
  if (size <= 0) return size;
  const Descriptors::Entry entry = Plain().Find(fd);
  if (entry.watched == nullptr) return size;
  EachPart(*message, static_cast<size_t>(size), [&](const void* bytes, size_t count) {
    entry.watched->Sent(bytes, count);
    return true;
  });
  return size;
}

ABSL_ATTRIBUTE_NOINLINE __attribute__((visibility("default"))) int STRIDE_OURS(SSL_write)(
    SSL* ssl, const void* buffer, int size) {
  using namespace stride::api;
  const int written = NextSslWrite(ssl, buffer, size);
  if (written <= 0 || !SSL_is_server(ssl)) return written;
  auto* watched = static_cast<Watched*>(SSL_get_ex_data(ssl, Index()));
  if (watched != nullptr) watched->Sent(buffer, static_cast<size_t>(written));
  return written;
}

ABSL_ATTRIBUTE_NOINLINE __attribute__((visibility("default"))) int STRIDE_OURS(SSL_read)(
    SSL* ssl, void* buffer, int size) {
  using namespace stride::api;
  int read = NextSslRead(ssl, buffer, size);
  if (read <= 0 || !SSL_is_server(ssl)) return read;
  if (FineEncrypted(ssl, buffer, static_cast<size_t>(read))) return read;
  ERR_raise(ERR_LIB_USER, ERR_R_PASSED_INVALID_ARGUMENT);
  return -1;
}
}
