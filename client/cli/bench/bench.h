// The measurements of `stride bench`, one file each. All add rows and end at the first error.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/cli/bench/many_clients.h"
#include "client/cli/bench/row.h"
#include "client/cli/context.h"
#include "stride/client.h"

namespace stride::cli {

struct BenchOptions {
  int num_calls = 0;                     // turns of what takes microseconds
  int num_rounds = 0;                    // of what takes longer
  std::chrono::nanoseconds duration{0};  // of a load of many clients
  std::vector<int> client_counts;        // rising
  int64_t bytes = 0;                     // of an array that is moved
  std::vector<int> stream_counts;        // rising
};

struct BenchSetup {
  const BenchOptions& options;
  Context& context;
  Client& client;
  ConnectOptions connection;  // for more clients of the same daemon
  std::string device;         // `devices/cpu:0`, `devices/cuda:0`: by its kind and place
  // Prints the row and keeps it.
  std::function<void(BenchRow)> add;

  // `cpu:0`
  std::string short_device() const { return device.substr(device.find('/') + 1); }
};

// Elements of a small job's arrays.
inline constexpr int64_t kSmallElements = 1000;
// An addition of two arrays of kSmallElements float32 that travel inline; the result's first
// element is 3.75.
Operation SmallAdd(const std::string& device);
inline constexpr int64_t kSmallBytes = kSmallElements * 4;

// A small Run, by a Unix socket also by gRPC, held against the emptiest call that there is.
Result<void> BenchLatency(BenchSetup& setup);
// Arrays in and out, held against memcpy.
Result<void> BenchBandwidth(BenchSetup& setup);
// Small operations in a row, one by one and as a program, held against one call each.
Result<void> BenchOperations(BenchSetup& setup);
// Many clients at once: each count's calls, held against those of the count before it.
Result<void> BenchClients(BenchSetup& setup);

}  // namespace stride::cli
