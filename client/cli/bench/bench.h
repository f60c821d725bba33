// The benchmarks of `stride bench`, one file each. Each adds its rows and stops at the first error.
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
  int num_calls = 0;                     // repetitions of calls of microseconds
  int num_rounds = 0;                    // repetitions of longer work
  std::chrono::nanoseconds duration{0};  // duration of a load of many clients
  std::vector<int> client_counts;        // ascending
  int64_t bytes = 0;                     // size of a transferred array
  std::vector<int> stream_counts;        // ascending
};

struct BenchSetup {
  const BenchOptions& options;
  Context& context;
  Client& client;
  ConnectOptions connection;  // for more clients of the same daemon
  std::string device;         // kind and index: `devices/cpu:0`, `devices/cuda:0`
  // Prints the row and keeps it.
  std::function<void(BenchRow)> add;

  // The device without its collection: `cpu:0`.
  std::string short_device() const { return device.substr(device.find('/') + 1); }
};

// Elements of a small job's arrays.
inline constexpr int64_t kSmallElements = 1000;
// Adds two inline arrays of kSmallElements float32; the result's first element is 3.75.
Operation SmallAdd(const std::string& device);
inline constexpr int64_t kSmallBytes = kSmallElements * 4;

// A small Run, over a Unix socket also by gRPC, compared with an empty call.
Result<void> BenchLatency(BenchSetup& setup);
// Arrays in and out, compared with memcpy.
Result<void> BenchBandwidth(BenchSetup& setup);
// Small operations in sequence, one by one and as a program, compared with one call each.
Result<void> BenchOperations(BenchSetup& setup);
// Many concurrent clients: the calls of each count, compared with those of the previous count.
Result<void> BenchClients(BenchSetup& setup);

}  // namespace stride::cli
