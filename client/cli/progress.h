// A line of progress of a transfer: bytes, rate, remaining time.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace stride::cli {

// Writes to standard error, only when that is a terminal; the destructor erases the line.
// Thread-safe.
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

// Formats as `1.5 GiB` or `312 B`.
std::string FormatBytes(double bytes);
// Formats as `1.2 ms`, `45 us` or `3.10 s`.
std::string FormatTime(std::chrono::nanoseconds time);

}  // namespace stride::cli
