// The measurements of `stride bench`, one file each. Each adds rows and ends at the first error.
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
  int num_calls = 0;                     // turns of measurements that take microseconds
  int num_rounds = 0;                    // turns of longer measurements
  std::chrono::nanoseconds duration{0};  // length of a load of many clients
  std::vector<int> client_counts;        // in rising order
  int64_t bytes = 0;                     // size of an array that is moved
  std::vector<int> stream_counts;        // in rising order
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

// A small Run, compared with the cheapest call; over a Unix socket by gRPC too.
Result<void> BenchLatency(BenchSetup& setup);
// Uploads and fetches of arrays, compared with memcpy.
Result<void> BenchBandwidth(BenchSetup& setup);
// Small operations in a row, one by one and as a program, compared with one call each.
Result<void> BenchOperations(BenchSetup& setup);
// Many clients at once: the calls of each number of clients, compared with those of the number
// before it.
Result<void> BenchClients(BenchSetup& setup);

}  // namespace stride::cli
