#include "server/fd_store/systemd_fd_store.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/fd_store/packet.h"

namespace stride::fd_store {
namespace {

constexpr char kPrefix[] = "stride-";
constexpr int kBarrierMs = 5000;

class SystemdFdStore : public FdStore {
 public:
  SystemdFdStore(std::string address, size_t limit, UniqueFd socket, std::vector<NamedFd> kept)
      : address_(std::move(address)),
        limit_(limit),
        socket_(std::move(socket)),
        kept_(std::move(kept)) {
    for (const NamedFd& entry : kept_) names_.insert(entry.name);
  }

  bool keeps() const override { return true; }

  absl::Status Store(const std::string& name, int fd) override {
    if (!IsName(name)) return absl::InvalidArgumentError("not a name for a descriptor");
    absl::MutexLock lock(&mutex_);
    // The FdStore accepts a second descriptor of the same name in addition to the first, and drops
    // any beyond its limit silently.
    bool replaces = names_.count(name) > 0;
    if (!replaces && names_.size() >= limit_)
      return absl::ResourceExhaustedError("the store of descriptors is full");
    if (replaces) Say(absl::StrCat("FDSTOREREMOVE=1\nFDNAME=", kPrefix, name)).IgnoreError();
    absl::Status status = Say(absl::StrCat("FDSTORE=1\nFDPOLL=0\nFDNAME=", kPrefix, name), fd);
    if (status.ok()) status = Barrier();
    if (status.ok()) names_.insert(name);
    return status;
  }

  void Remove(const std::string& name) override {
    absl::MutexLock lock(&mutex_);
    if (names_.erase(name) == 0) return;
    Say(absl::StrCat("FDSTOREREMOVE=1\nFDNAME=", kPrefix, name)).IgnoreError();
  }

  std::vector<NamedFd> TakeAll() override { return std::move(kept_); }

 private:
  absl::Status Say(const std::string& text, int fd = -1) {
    return SendPacket(socket_.get(), text, fd, address_);
  }

  // The manager closes its end of the pipe once it has read everything sent before.
  absl::Status Barrier() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "making a pipe");
    UniqueFd read_end(ends[0]), write_end(ends[1]);
    if (absl::Status status = Say("BARRIER=1", write_end.get()); !status.ok()) return status;
    write_end.Reset();
    pollfd entry{read_end.get(), 0, 0};
    int ready;
    do {
      ready = poll(&entry, 1, kBarrierMs);
    } while (ready < 0 && errno == EINTR);
    if (ready > 0) return absl::OkStatus();
    return absl::DeadlineExceededError("the service manager does not answer");
  }

  const std::string address_;
  const size_t limit_;
  const UniqueFd socket_;
  std::vector<NamedFd> kept_;  // until TakeAll
  absl::Mutex mutex_;
  std::set<std::string> names_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<FdStore> MakeSystemdFdStore(std::vector<NamedFd>* passed) {
  std::vector<NamedFd> kept, others;
  for (NamedFd& entry : *passed) {
    if (entry.name.rfind(kPrefix, 0) == 0) {
      kept.push_back({entry.name.substr(sizeof(kPrefix) - 1), std::move(entry.fd)});
    } else {
      others.push_back(std::move(entry));
    }
  }
  *passed = std::move(others);
  const char* address = std::getenv("NOTIFY_SOCKET");
  const char* limit = std::getenv("FDSTORE");
  size_t max_fds = 0;
  if (address == nullptr || limit == nullptr || !absl::SimpleAtoi(limit, &max_fds) || max_fds == 0)
    return nullptr;
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return nullptr;
  return std::make_unique<SystemdFdStore>(address, max_fds, std::move(socket), std::move(kept));
}

}  // namespace stride::fd_store
