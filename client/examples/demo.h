// Helpers of the demo's workloads: timed steps against the daemon, independent checks, one line of
// report each.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "stride/client.h"

namespace stride::demo {

// Time of one workload by phase. The client measures `upload` and `download`, network included; the
// daemon measures the others.
struct Phases {
  std::string device;
  std::chrono::nanoseconds upload{0}, queue{0}, compile{0}, run{0}, download{0};
  std::chrono::nanoseconds Total() const { return upload + queue + compile + run + download; }
};

struct Check {
  bool good = false;
  std::string text;
};

class Demo {
 public:
  Demo(Client& client, std::vector<Device> devices, bool quick)
      : client_(client), devices_(std::move(devices)), quick_(quick) {}

  Client& client() { return client_; }
  // The serving devices.
  const std::vector<Device>& devices() const { return devices_; }
  bool quick() const { return quick_; }
  bool all_good() const { return all_good_; }

  // Runs one workload and prints its line. An error counts as a failed check.
  void Run(const std::string& name, const std::function<Result<Check>(Phases&)>& workload);

  // Steps whose time is added to `phases`.
  template <typename T>
  Result<Array> Put(const std::vector<T>& values, std::vector<int64_t> shape, Phases& phases,
                    const PutOptions& options = {}) {
    const auto start = std::chrono::steady_clock::now();
    auto array = client_.Put(values, std::move(shape), options);
    phases.upload += std::chrono::steady_clock::now() - start;
    return array;
  }
  // Waits for the result.
  Result<Array> Compute(const Operation& operation, Phases& phases);
  template <typename T>
  Result<std::vector<T>> Fetch(const Array& array, Phases& phases) {
    const auto start = std::chrono::steady_clock::now();
    auto values = client_.Fetch<T>(array);
    phases.download += std::chrono::steady_clock::now() - start;
    return values;
  }

 private:
  Client& client_;
  const std::vector<Device> devices_;
  const bool quick_;
  bool all_good_ = true;
};

// Returns 0, 1, 2, ...
template <typename T>
std::vector<T> Counting(int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(i);
  return values;
}

// Pseudo-random values in [-1, 1], determined by the seed.
template <typename T>
std::vector<T> Noise(int64_t count, uint64_t seed) {
  std::vector<T> values(static_cast<size_t>(count));
  for (T& value : values) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    value =
        static_cast<T>(static_cast<double>(static_cast<int64_t>(seed) >> 11) / 4503599627370496.0);
  }
  return values;
}

// Formats like printf.
[[gnu::format(printf, 1, 2)]] std::string Text(const char* format, ...);
double Milliseconds(std::chrono::nanoseconds time);

// Compares exactly and reports the first difference.
template <typename T>
Check Same(const std::vector<T>& got, const std::vector<T>& expected, const std::string& what) {
  if (got.size() != expected.size())
    return {false, Text("%zu elements, not %zu", got.size(), expected.size())};
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] != expected[i]) {
      return {false, Text("element %zu is %.17g, not %.17g", i, static_cast<double>(got[i]),
                          static_cast<double>(expected[i]))};
    }
  }
  return {true, what};
}

// The workloads, one file per library that they come from.
void RunCupy(Demo& demo);
void RunNumba(Demo& demo);
void RunMatmul(Demo& demo);
void RunJax(Demo& demo);
void RunJulia(Demo& demo);
void ShowMetrics(Demo& demo);

}  // namespace stride::demo

// Takes the value of a Result, or returns its error from the workload.
#define DEMO_TRY(variable, expression)              \
  auto variable##_or = (expression);                \
  if (!variable##_or) return variable##_or.error(); \
  auto variable = std::move(variable##_or).value()
