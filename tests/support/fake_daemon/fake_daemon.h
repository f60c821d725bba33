// A daemon for tests of clients: keeps arrays in memory and computes one ufunc, `add` of two int32
// arrays of one shape.
#pragma once

#include <atomic>
#include <memory>
#include <string>

namespace stride::testing {

// Counts of clients' actions, for tests to check.
struct FakeCounters {
  std::atomic<int> messages{0};  // ExecuteRequests
  std::atomic<int> commands{0};  // in them
  std::atomic<int> released{0};  // released handles
  std::atomic<int> puts{0};      // PutArray calls
  std::atomic<int> fetches{0};   // FetchArray calls
  std::atomic<int> streams{0};   // Execute calls
  std::atomic<int> sessions{0};  // created sessions
  std::atomic<int> open_sessions{0};
};

// Faults to inject.
struct FakeFaults {
  std::atomic<bool> hold_answers{false};   // Execute reads but does not answer
  std::atomic<bool> break_streams{false};  // Execute ends with UNAVAILABLE at the next message
  std::atomic<bool> short_fetch{false};    // FetchArray ends early
};

class FakeDaemon {
 public:
  // A gRPC address, such as `unix:/tmp/x/s`.
  explicit FakeDaemon(const std::string& address);
  ~FakeDaemon();

  FakeCounters& counters();
  FakeFaults& faults();
  // Number of arrays held now.
  size_t num_arrays();
  void Wait();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stride::testing
