// What every call may be told.
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
  // Bytes moved since the last report. Called from the transfer's threads, several at once; must be
  // quick.
  std::function<void(int64_t)> progress;
};

struct PutOptions : TransferOptions {
  // A full array name such as `tenants/default/arrays/weights`; empty: a handle of this client's
  // session.
  std::string name;
  // Named arrays only: how long it lives. Zero: for good.
  std::chrono::seconds ttl{0};
  // Device to place it on, such as `devices/cpu:0`; empty: the daemon's choice.
  std::string device;
  // In place of a device: spreads it over several.
  std::optional<Sharding> sharding;
  // Named arrays only: overwrites a ready array of the same type and shape.
  bool overwrite = false;
};

struct ComputeOptions : CallOptions {
  // Has the daemon report where the time went (Array::Timeline), at the price of an answer only
  // when the work is done.
  bool timeline = false;
};

}  // namespace stride
