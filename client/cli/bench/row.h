// Rows of `stride bench`, in the form that bench/report/row.py reads.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/json.h"

namespace stride::cli {

// Times of one repeated measurement in seconds; sorted once, on the first query.
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
  // Returns the smallest value that at least `share` of the samples do not exceed; 0 without
  // samples.
  double Quantile(double share) const;
  double median() const { return Quantile(0.5); }
  double p99() const { return Quantile(0.99); }
  double min() const { return Quantile(0); }

 private:
  mutable std::vector<double> seconds_;
  mutable bool sorted_ = false;
};

// All times are in seconds, so that a ratio above 1 means that ours is slower.
struct BenchRow {
  std::string id;  // `clients/10/cpu:0`: stable, for scripts
  std::string what;
  Samples ours;
  std::string baseline_name;
  std::optional<Samples> baseline;
  // Bytes moved per call; 0: not applicable.
  int64_t bytes = 0;
  // Further numbers, such as calls per second.
  std::vector<std::pair<std::string, double>> more = {};
};

// Jain's fairness index: 1 if all shares are equal, 1/n if one has everything; 1 without shares.
double JainIndex(const std::vector<double>& shares);

Json ToJson(const BenchRow& row);
// Formats the row as one line; BenchHeading is the line above the first row.
std::string ToText(const BenchRow& row);
std::string BenchHeading();

}  // namespace stride::cli
