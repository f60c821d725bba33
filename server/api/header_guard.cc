#include "server/api/header_guard.h"

#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/api/header_blocks.h"
#include "server/api/log.h"
#include "server/api/reset_budget.h"
#include "server/base/surroundings.h"

#ifdef STRIDE_PORTABLE
// gRPC and OpenSSL are archives: the linker puts us between them (--wrap).
#define STRIDE_OURS(name) __wrap_##name
extern "C" ssize_t __real_recvmsg(int, msghdr*, int);
extern "C" int __real_SSL_read(SSL*, void*, int);
#else
// The executable's functions go before those of the libraries that it loads.
#define STRIDE_OURS(name) name
#endif

namespace stride::api {
namespace {

constexpr absl::Duration kLogInterval = absl::Seconds(10);

std::atomic<int64_t> num_ended{0};

// Why connections are ended. One that attacks connects again at once: a line now and then is
// enough.
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

ResetBudget& Budget() {
  static ResetBudget& budget = *new ResetBudget();
  return budget;
}

// gRPC reads a connection on one thread at a time, so nobody waits for the lock.
class Watched {
 public:
  // `account`: whose resets they are.
  Watched(std::string peer, std::string account)
      : peer_(std::move(peer)), account_(std::move(account)) {}

  bool Take(const void* bytes, size_t size) {
    std::lock_guard lock(mutex_);
    if (ended_) return false;
    Reason* reason = nullptr;
    if (!blocks_.Take(static_cast<const uint8_t*>(bytes), size)) reason = &Headers();
    uint64_t resets = blocks_.TakeResets();
    if (resets > 0 && !Budget().Take(account_, resets, Now())) reason = &Resets();
    ended_ = reason != nullptr;
    if (ended_) reason->Log(peer_);
    return !ended_;
  }

 private:
  const std::string peer_, account_;
  std::mutex mutex_;
  HeaderBlocks blocks_;
  bool ended_ = false;
};

// The connections that are not encrypted, by descriptor. gRPC tells nobody when it closes one: the
// inode tells whether the number is still that connection's.
class Descriptors {
 public:
  void Add(int fd, std::shared_ptr<Watched> watched) {
    struct stat info;
    if (fstat(fd, &info) != 0) return;
    absl::WriterMutexLock lock(&mutex_);
    entries_[fd] = {info.st_dev, info.st_ino, std::move(watched)};
  }

  // Null: not watched.
  std::shared_ptr<Watched> Find(int fd) {
    {
      absl::ReaderMutexLock lock(&mutex_);
      auto it = entries_.find(fd);
      if (it == entries_.end()) return nullptr;
      struct stat info;
      bool same = fstat(fd, &info) == 0 && info.st_dev == it->second.device &&
                  info.st_ino == it->second.inode;
      if (same) return it->second.watched;
    }
    absl::WriterMutexLock lock(&mutex_);
    // Nobody adds this number meanwhile: its present owner is reading from it.
    entries_.erase(fd);
    return nullptr;
  }

 private:
  struct Entry {
    dev_t device = 0;
    ino_t inode = 0;
    std::shared_ptr<Watched> watched;
  };
  absl::Mutex mutex_;
  std::unordered_map<int, Entry> entries_;
};

// Never destroyed: gRPC's threads may read until the process ends.
Descriptors& Plain() {
  static Descriptors& descriptors = *new Descriptors();
  return descriptors;
}

bool Fine(Watched& watched, const msghdr& message, size_t size) {
  for (size_t i = 0; i < message.msg_iovlen && size > 0; ++i) {
    const iovec& part = message.msg_iov[i];
    size_t taken = std::min(part.iov_len, size);
    if (!watched.Take(part.iov_base, taken)) return false;
    size -= taken;
  }
  return true;
}

void Forget(void*, void* watched, CRYPTO_EX_DATA*, int, long, void*) {  // NOLINT: OpenSSL's type
  delete static_cast<Watched*>(watched);
}

// What follows this TLS connection goes with it.
bool FineEncrypted(SSL* ssl, const void* bytes, size_t size) {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, Forget);
  auto* watched = static_cast<Watched*>(SSL_get_ex_data(ssl, index));
  if (watched == nullptr) {
    static std::atomic<uint64_t> number{0};
    auto fresh = std::make_unique<Watched>("a TLS connection", absl::StrCat("TLS ", ++number));
    if (SSL_set_ex_data(ssl, index, fresh.get()) != 1) return false;
    watched = fresh.release();
  }
  return watched->Take(bytes, size);
}

ssize_t NextRecvmsg(int fd, msghdr* message, int flags) {
#ifdef STRIDE_PORTABLE
  return __real_recvmsg(fd, message, flags);
#else
  static const auto next = reinterpret_cast<decltype(&recvmsg)>(dlsym(RTLD_NEXT, "recvmsg"));
  return next(fd, message, flags);
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
  if (dlsym(RTLD_DEFAULT, "recvmsg") != reinterpret_cast<void*>(&recvmsg) ||
      dlsym(RTLD_DEFAULT, "SSL_read") != reinterpret_cast<void*>(&SSL_read)) {
    return absl::FailedPreconditionError(
        "what clients send cannot be watched: gRPC would find other functions for reading than "
        "this program's");
  }
#endif
  return absl::OkStatus();
}

void HeaderGuard::Watch(int fd, const std::string& peer) {
  Plain().Add(fd, std::make_shared<Watched>(peer, peer));
}

void HeaderGuard::SetResetBurst(int burst) { Budget().set_burst(burst); }

int64_t HeaderGuard::ended() { return num_ended; }

}  // namespace stride::api

extern "C" {

ABSL_ATTRIBUTE_NOINLINE __attribute__((visibility("default"))) ssize_t STRIDE_OURS(recvmsg)(
    int fd, msghdr* message, int flags) {
  using namespace stride::api;
  ssize_t size = NextRecvmsg(fd, message, flags);
  if (size <= 0 || (flags & (MSG_PEEK | MSG_ERRQUEUE)) != 0) return size;
  std::shared_ptr<Watched> watched = Plain().Find(fd);
  if (watched == nullptr || Fine(*watched, *message, static_cast<size_t>(size))) return size;
  // gRPC closes it, but may take its time.
  shutdown(fd, SHUT_RDWR);
  errno = ECONNRESET;
  return -1;
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
