// Times of one operation's phases, measured by the daemon.
#pragma once

#include <chrono>
#include <string>

namespace stride {

// Phases that did not occur are zero.
struct Timeline {
  std::string device;
  // By the daemon's clock; on the daemon's machine they are comparable with the program's. The
  // epoch: not reached yet.
  std::chrono::system_clock::time_point accepted, started, ended;
  std::chrono::nanoseconds queue{0};    // waiting for inputs, for code and for the device
  std::chrono::nanoseconds compile{0};  // part of `queue` spent in the compiler
  std::chrono::nanoseconds upload{0};   // moving inputs to the device
  std::chrono::nanoseconds run{0};      // on the device, as measured by the device
  std::chrono::nanoseconds download{0};
  std::chrono::nanoseconds total{0};  // acceptance to end
};

}  // namespace stride
