#pragma once

#include <memory>

#include "absl/time/time.h"
#include "server/api/address.h"

namespace stride {

// Asks a daemon for its health through its own socket, as a client would.
class Probe {
 public:
  explicit Probe(const api::Address& address);
  ~Probe();
  // Whether it answered in time, whatever the answer: a device may be ill without the daemon being
  // so.
  bool Answers(absl::Duration timeout);

 private:
  struct Channel;
  std::unique_ptr<Channel> channel_;
};

}  // namespace stride
