#include "server/fd_store/supervised_fd_store.h"

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/fd_store/packet.h"
#include "server/fd_store/supervisor_protocol.h"

namespace stride::fd_store {
namespace {

std::string Text(char kind, const std::string& rest = "") { return kind + rest; }

class SupervisedFdStore : public FdStore {
 public:
  SupervisedFdStore(UniqueFd socket, absl::Duration patience)
      : socket_(std::move(socket)), patience_(patience) {}

  bool keeps() const override { return true; }

  absl::Status Store(const std::string& name, int fd) override {
    absl::MutexLock lock(&mutex_);
    Packet answer;
    if (absl::Status status = Ask(Text(kStore, name), fd, &answer); !status.ok()) return status;
    if (answer.text[0] == kDone) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("the supervisor does not keep a descriptor: ", answer.text.substr(1)));
  }

  void Remove(const std::string& name) override {
    absl::MutexLock lock(&mutex_);
    SendPacket(socket_.get(), Text(kRemove, name)).IgnoreError();
  }

  std::vector<NamedFd> TakeAll() override {
    absl::MutexLock lock(&mutex_);
    std::vector<NamedFd> taken;
    for (;;) {
      Packet answer;
      absl::Status status = Ask(Text(kTake, std::to_string(taken.size())), -1, &answer);
      if (!status.ok() || answer.text[0] != kKept) return taken;
      taken.push_back({answer.text.substr(1), std::move(answer.fd)});
    }
  }

  void Ready() override {
    absl::MutexLock lock(&mutex_);
    SendPacket(socket_.get(), Text(kReady)).IgnoreError();
  }

  void Alive() override {
    absl::MutexLock lock(&mutex_);
    SendPacket(socket_.get(), Text(kAlive)).IgnoreError();
  }

  absl::Duration patience() const override { return patience_; }

 private:
  absl::Status Ask(const std::string& text, int fd, Packet* answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    absl::Status status = SendPacket(socket_.get(), text, fd);
    return status.ok() ? ReceivePacket(socket_.get(), answer) : status;
  }

  const UniqueFd socket_;
  const absl::Duration patience_;
  absl::Mutex mutex_;  // one question at a time
};

}  // namespace

std::unique_ptr<FdStore> MakeSupervisedFdStore(UniqueFd socket, absl::Duration patience) {
  return std::make_unique<SupervisedFdStore>(std::move(socket), patience);
}

}  // namespace stride::fd_store
