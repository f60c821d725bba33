// Many clients of one daemon, driven from few threads: for load generators.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stride/client.h"

namespace stride::cli {

// The call that each client repeats; the next call starts when the last one has ended.
enum class Load {
  kRun,   // ComputeService.Run of the operation
  kEcho,  // SessionService.GetSession: the cost of an empty answer
};

struct ClientLoad {
  int64_t calls = 0;
  // From the start of its first measured call to the end of its last one.
  double seconds = 0;
};

struct LoadResult {
  std::vector<ClientLoad> clients;
  std::vector<double> latencies;  // one for every measured call, seconds
  double seconds = 0;             // from the first start to the last end
  // Failed calls; each was repeated after a pause. `first_error` is the error of one of them.
  int64_t num_failed = 0;
  Error first_error;
};

// Each client has a connection and a session of its own. Not thread-safe.
class ManyClients {
 public:
  struct Options {
    ConnectOptions connection;
    int num_clients = 1;
    int num_threads = 1;  // that serve the clients' completions
    Cancellation cancellation;
  };

  // Connects all and opens their sessions. Fails with the first refusal of the daemon or the
  // system, and reports how many clients were connected: RESOURCE_EXHAUSTED when this process may
  // not open that many files, UNAVAILABLE when the daemon turns connections away, CANCELLED.
  static Result<std::unique_ptr<ManyClients>> Open(const Options& options);
  // Ends the sessions and closes the connections.
  ~ManyClients();
  ManyClients(const ManyClients&) = delete;
  ManyClients& operator=(const ManyClients&) = delete;

  // The operation of kRun; its inputs and results travel inline, so it names no arrays. The result
  // of each client's first call must have `result_bytes` bytes of elements.
  void SetOperation(const Operation& operation, int64_t result_bytes);

  // Ends when `duration` is over and the calls in flight are answered, or before that after
  // `num_calls` of each client when that is above 0. Calls are counted after one unmeasured call of
  // each client. Fails when a result is wrong, or when calls fail and none
  // succeeds.
  Result<LoadResult> Run(Load load, std::chrono::nanoseconds duration, int64_t num_calls = 0);

 private:
  class Impl;
  explicit ManyClients(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stride::cli
