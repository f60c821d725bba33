// Where the time of one operation went, as the daemon measured it.
#pragma once

#include <chrono>
#include <string>

namespace stride {

// Phases that did not occur are zero.
struct Timeline {
  std::string device;
  // By the daemon's clock; on the daemon's own machine they compare with the program's. Without a
  // value (the epoch): not there yet.
  std::chrono::system_clock::time_point accepted, started, ended;
  std::chrono::nanoseconds queue{0};    // waiting for inputs, for code and for the device
  std::chrono::nanoseconds compile{0};  // part of `queue` that the compiler took
  std::chrono::nanoseconds upload{0};   // moving inputs to the device
  std::chrono::nanoseconds run{0};      // on the device, as the device measured it
  std::chrono::nanoseconds download{0};
  std::chrono::nanoseconds total{0};  // acceptance to end
};

}  // namespace stride
