#include "server/api/local/pins.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "server/base/system_error.h"

namespace stride::api {
namespace {

constexpr uint64_t kStop = 0;  // no pin has this id
constexpr int kEventsInTurn = 64;

bool Watch(const UniqueFd& events, int fd, uint64_t id) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = id;
  return epoll_ctl(events.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

Pins::Pins(Release release)
    : release_(std::move(release)),
      events_(epoll_create1(EPOLL_CLOEXEC)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  // Without them Add returns the error of epoll_ctl.
  if (Watch(events_, stop_.get(), kStop)) thread_ = std::thread([this] { Run(); });
}

void Pins::Stop() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

absl::StatusOr<UniqueFd> Pins::Add(const std::string& memory) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return SystemError(errno, "making a pin");
  auto ours = std::make_shared<const UniqueFd>(ends[0]);
  UniqueFd theirs(ends[1]);
  absl::MutexLock lock(&mutex_);
  if (!Watch(events_, ours->get(), ++last_id_)) return SystemError(errno, "watching a pin");
  pins_[last_id_] = {memory, std::move(ours)};
  return theirs;
}

void Pins::Drop(std::string_view memory) {
  absl::MutexLock lock(&mutex_);
  // The close also ends the watch.
  std::erase_if(pins_, [&](const auto& pin) { return pin.second.memory == memory; });
}

size_t Pins::size() {
  absl::MutexLock lock(&mutex_);
  return pins_.size();
}

void Pins::Run() {
  std::array<epoll_event, kEventsInTurn> ready;
  for (;;) {
    const int count = epoll_wait(events_.get(), ready.data(), kEventsInTurn, -1);
    for (int i = 0; i < count; ++i) {
      if (ready[i].data.u64 == kStop) return;
      std::map<uint64_t, Pin>::node_type pin;
      {
        absl::MutexLock lock(&mutex_);
        pin = pins_.extract(ready[i].data.u64);
      }
      if (pin.empty()) continue;  // dropped
      // The descriptor may stay open for a while, and would be reported again.
      epoll_ctl(events_.get(), EPOLL_CTL_DEL, pin.mapped().end->get(), nullptr);
      release_(pin.mapped().memory, std::move(pin.mapped().end));
    }
  }
}

}  // namespace stride::api
