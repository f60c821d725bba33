// Many clients of one daemon, driven by few threads: for load generators.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stride/client.h"

namespace stride::internal {

// The call that each client repeats. The next one starts as soon as the last has ended.
enum class Load {
  kRun,   // ComputeService.Run of the operation
  kEcho,  // SessionService.GetSession: the cost of any answer
};

struct ClientLoad {
  int64_t calls = 0;
  // From the start of its first measured call to the end of its last one.
  double seconds = 0;
};

struct LoadResult {
  std::vector<ClientLoad> clients;
  std::vector<double> latencies;  // seconds of each measured call
  double seconds = 0;             // from the first start to the last end
  // Number of failed calls, each of which was repeated after a pause. `first_error` belongs to one
  // of them.
  int64_t num_failed = 0;
  Error first_error;
};

// Each client has its own connection and session. Not thread-safe.
class ManyClients {
 public:
  struct Options {
    ConnectOptions connection;
    int num_clients = 1;
    int num_threads = 1;  // threads that serve the clients' completions
    Cancellation cancellation;
  };

  // Connects all clients and opens their sessions. Fails with the first refusal of the daemon or
  // the system, and with the number of clients connected before it: RESOURCE_EXHAUSTED when this
  // process may not open that many files, UNAVAILABLE when the daemon refuses connections,
  // CANCELLED.
  static Result<std::unique_ptr<ManyClients>> Open(const Options& options);
  // Ends the sessions and closes the connections.
  ~ManyClients();
  ManyClients(const ManyClients&) = delete;
  ManyClients& operator=(const ManyClients&) = delete;

  // The operation of kRun. Its inputs and results are inline, so that it names no arrays. The
  // result of each client's first call must have `result_bytes` bytes of elements.
  void SetOperation(const Operation& operation, int64_t result_bytes);

  // Ends when `duration` is over and calls in flight are answered, or earlier after `num_calls` of
  // each client if that is above 0. Each client makes one unmeasured call first. Fails when a
  // result has a wrong size, or when calls fail and none succeeds.
  Result<LoadResult> Run(Load load, std::chrono::nanoseconds duration, int64_t num_calls = 0);

 private:
  class Impl;
  explicit ManyClients(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stride::internal
