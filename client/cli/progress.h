// A line that tells how a transfer goes: bytes, speed, time left.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace stride::cli {

// Written to standard error, only when that is a terminal, and wiped at the end. Thread-safe.
class Progress {
 public:
  Progress(std::string label, int64_t total_bytes, bool wanted);
  ~Progress();
  void Add(int64_t bytes);

 private:
  const std::string label_;
  const int64_t total_;
  const bool shown_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  int64_t done_ = 0;
  std::chrono::steady_clock::time_point drawn_ = start_;
  bool dirty_ = false;
};

// `1.5 GiB`, `312 B`
std::string FormatBytes(double bytes);
// `1.2 ms`, `45 us`, `3.10 s`
std::string FormatTime(std::chrono::nanoseconds time);

}  // namespace stride::cli
