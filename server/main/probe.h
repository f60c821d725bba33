#pragma once

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "server/api/address.h"
#include "server/base/unique_fd.h"

namespace stride {

// Queries a daemon's health through its own socket, like a client. One thread.
class Probe {
 public:
  explicit Probe(const api::Address& address);
  // Uses connections from `connect`, a new one after each broken one.
  explicit Probe(std::function<UniqueFd()> connect);
  ~Probe();
  // Whether the daemon answered in time, with any answer: an unhealthy device does not mean an
  // unhealthy daemon.
  bool Answers(absl::Duration timeout);
  // Ends the waiting call, and all later ones at once. Any thread.
  void Cancel();

 private:
  struct Channel;
  std::unique_ptr<Channel> channel_;
  const std::function<UniqueFd()> connect_;  // may be empty
};

}  // namespace stride
