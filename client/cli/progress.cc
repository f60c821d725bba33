#include "client/cli/progress.h"

#include <unistd.h>

#include <cstdio>

namespace stride::cli {

Progress::Progress(std::string label, int64_t total_bytes, bool wanted)
    : label_(std::move(label)), total_(total_bytes), shown_(wanted && isatty(STDERR_FILENO)) {}

Progress::~Progress() {
  if (dirty_) std::fputs("\r\033[K", stderr);
}

void Progress::Add(int64_t bytes) {
  if (!shown_) return;
  std::lock_guard lock(mutex_);
  done_ += bytes;
  const auto now = std::chrono::steady_clock::now();
  // Short transfers show no progress; long ones redraw the line ten times a second.
  if (now - start_ < std::chrono::milliseconds(300) ||
      now - drawn_ < std::chrono::milliseconds(100))
    return;
  drawn_ = now;
  dirty_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done_) / seconds;
  const double left = rate > 0 ? static_cast<double>(total_ - done_) / rate : 0;
  std::fprintf(stderr, "\r\033[K%s %s of %s  %.2f GB/s  %.0f s left", label_.c_str(),
               FormatBytes(static_cast<double>(done_)).c_str(),
               FormatBytes(static_cast<double>(total_)).c_str(), rate / 1e9, left);
  std::fflush(stderr);
}

std::string FormatBytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return buffer;
}

std::string FormatTime(std::chrono::nanoseconds time) {
  const double us = static_cast<double>(time.count()) / 1e3;
  char buffer[32];
  if (us < 1000) {
    std::snprintf(buffer, sizeof(buffer), "%.0f us", us);
  } else if (us < 1e6) {
    std::snprintf(buffer, sizeof(buffer), "%.1f ms", us / 1e3);
  } else {
    std::snprintf(buffer, sizeof(buffer), "%.2f s", us / 1e6);
  }
  return buffer;
}

}  // namespace stride::cli
