#include "server/main/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace stride {

absl::StatusOr<Signals> Signals::Block() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  UniqueFd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "listening for signals");
  return Signals(std::move(fd));
}

int Signals::Next() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof(info)) != sizeof(info)) return 0;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace stride
