// Options of calls.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "stride/cancellation.h"
#include "stride/sharding.h"

namespace stride {

struct CallOptions {
  // Longest time for the whole call, queue, transfer and run included. Zero: the client's default.
  std::chrono::nanoseconds timeout{0};
  std::optional<Cancellation> cancellation;
};

struct TransferOptions : CallOptions {
  // Receives the number of bytes moved since the last report. Called from the transfer's threads,
  // several at once; must return quickly.
  std::function<void(int64_t)> progress;
};

struct PutOptions : TransferOptions {
  // A full array name such as `tenants/default/arrays/weights`; empty: a handle of this client's
  // session.
  std::string name;
  // Named arrays only: lifetime. Zero: unlimited.
  std::chrono::seconds ttl{0};
  // Device to place it on, such as `devices/cpu:0`; empty: the daemon's choice.
  std::string device;
  // Spreads the array over several devices; replaces `device`.
  std::optional<Sharding> sharding;
  // Named arrays only: overwrites a ready array of the same type and shape.
  bool overwrite = false;
};

struct ComputeOptions : CallOptions {
  // Makes the daemon report a timeline (Array::Timeline). The daemon then answers only when the
  // work is done.
  bool timeline = false;
};

}  // namespace stride
