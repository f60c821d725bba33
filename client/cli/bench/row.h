// What `stride bench` measures, as bench/report/row.py reads it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/json.h"

namespace stride::cli {

// Seconds of one thing done many times; sorted once, when the first number of them is asked for.
class Samples {
 public:
  Samples() = default;
  explicit Samples(std::vector<double> seconds) : seconds_(std::move(seconds)) {}
  void Add(double seconds) {
    seconds_.push_back(seconds);
    sorted_ = false;
  }
  void Add(std::chrono::nanoseconds time) { Add(std::chrono::duration<double>(time).count()); }
  size_t count() const { return seconds_.size(); }
  // The smallest value that at least `share` of the samples do not exceed; 0 of no samples.
  double Quantile(double share) const;
  double median() const { return Quantile(0.5); }
  double p99() const { return Quantile(0.99); }
  double min() const { return Quantile(0); }

 private:
  mutable std::vector<double> seconds_;
  mutable bool sorted_ = false;
};

// All times are seconds, so that a ratio above 1 says that ours is slower.
struct BenchRow {
  std::string id;  // `clients/10/cpu:0`: stable, for scripts
  std::string what;
  Samples ours;
  std::string baseline_name;
  std::optional<Samples> baseline;
  // Bytes moved by one turn; 0: none to speak of.
  int64_t bytes = 0;
  // Numbers beside the times, such as calls a second.
  std::vector<std::pair<std::string, double>> more = {};
};

// Jain's index of shares: 1 when all are equal, 1/n when one has everything. 1 of no shares.
double JainIndex(const std::vector<double>& shares);

Json ToJson(const BenchRow& row);
// One line of text; BenchHeading is the line above the first.
std::string ToText(const BenchRow& row);
std::string BenchHeading();

}  // namespace stride::cli
