// How long things take.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace stride::bench {

using Clock = std::chrono::steady_clock;

inline double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

template <typename Work>
double SecondsOf(const Work& work) {
  const auto start = Clock::now();
  work();
  return SecondsSince(start);
}

// Durations in seconds of one thing done many times.
class Times {
 public:
  void Add(double seconds) { seconds_.push_back(seconds); }
  size_t count() const { return seconds_.size(); }
  double median() const { return Quantile(0.5); }
  double min() const { return Quantile(0); }
  // With fewer than a hundred, the longest.
  double p99() const { return Quantile(0.99); }

 private:
  double Quantile(double share) const {
    if (seconds_.empty()) return 0;
    std::vector<double> sorted = seconds_;
    const size_t at = std::min(sorted.size() - 1,
                               static_cast<size_t>(share * static_cast<double>(sorted.size())));
    std::nth_element(sorted.begin(), sorted.begin() + at, sorted.end());
    return sorted[at];
  }

  std::vector<double> seconds_;
};

}  // namespace stride::bench
