// Work of one tenant that continues while processes die, and a record of its results: for tests of
// guarantees over deaths.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "stride/client.h"
#include "tests/support/daemon/daemon.h"

namespace stride::testing {

inline constexpr auto kPatience = std::chrono::seconds(60);

// Calls until the daemon serves again; returns any other error.
template <typename F>
auto Persist(F call) -> decltype(call()) {
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    auto result = call();
    if (result || result.error().code != Code::kUnavailable ||
        std::chrono::steady_clock::now() > give_up)
      return result;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

struct LoadOptions {
  uint32_t seed = 1;
  std::string tenant = "default";
  std::string token;  // empty if none is needed
};

// Three threads: named arrays, chains of unnamed ones, jobs. Start, Stop, Check, once each and in
// this order; failures are those of the running test.
class Load {
 public:
  Load(Daemon& daemon, LoadOptions options) : daemon_(daemon), options_(std::move(options)) {}
  ~Load() { Stop(); }

  void Start();
  void Stop();
  // Every acknowledged array and job exists with its correct content, also as summed by the device;
  // then all is deleted.
  void Check();

 private:
  Client Connect() const;
  std::string Named(const std::string& id) const;
  void RunArrays();
  void RunChains();
  void RunJobs();
  void CheckArray(Client& client, const std::string& id, const std::vector<double>& content);
  void CheckJob(Client& client, const std::string& name, const std::string& id);
  void DeleteAll(Client& client);

  Daemon& daemon_;
  const LoadOptions options_;
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
  std::map<std::string, std::vector<double>> named_;
  std::map<std::string, std::string> jobs_;  // name -> number
  std::atomic<int> num_chains_{0};
  int num_lost_ = 0;  // jobs whose change in place was interrupted by a death
};

// The bytes of arrays on all devices return to zero.
void ExpectNoArraysLeft(Client& client);

}  // namespace stride::testing
