#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

namespace stride::testing {

// Longer than an overloaded machine pauses a thread, shorter than ctest's limit for a test
// (cmake/stride_test.cmake), so that a failed wait names its condition.
constexpr std::chrono::seconds kAwaitLimit{100};

// Polls until `holds` returns true, for a state without an event. Returns false after `limit`. Any
// thread.
template <typename Predicate>
bool Eventually(Predicate holds, std::chrono::milliseconds limit = kAwaitLimit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Polls `condition` every millisecond until it returns true. Throws, which fails the test, after
// kAwaitLimit. Any thread may call; on a thread other than the test's own the exception ends the
// process.
template <typename Condition>
void AwaitCondition(Condition condition, const char* text, const char* file, int line) {
  if (Eventually(condition)) return;
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) +
                           ": still false after 100 s: " + text);
}

}  // namespace stride::testing

// Every wait of a test has an end: a wait without one turns a failure into a hang.
#define AWAIT(condition)                                                                      \
  ::stride::testing::AwaitCondition([&] { return static_cast<bool>(condition); }, #condition, \
                                    __FILE__, __LINE__)
