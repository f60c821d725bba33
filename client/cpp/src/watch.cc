#include "client/cpp/src/watch.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace stride::internal {
namespace {

constexpr unsigned kPlenty = 8;
constexpr auto kLonger = std::chrono::microseconds(150);
// After this time each poll yields the processor to other threads.
constexpr auto kSelfish = std::chrono::microseconds(50);

std::atomic<unsigned> num_watching{0};

}  // namespace

bool Watch(const std::function<bool()>& done) {
  using Clock = std::chrono::steady_clock;
  static const unsigned num_processors = std::thread::hardware_concurrency();
  if (num_processors < kPlenty) return false;
  bool is_done = false;
  if (num_watching.fetch_add(1) < num_processors / 4) {
    const auto begin = Clock::now();
    for (auto passed = Clock::duration::zero(); !is_done && passed < kLonger;
         passed = Clock::now() - begin) {
      if (passed > kSelfish) std::this_thread::yield();
      is_done = done();
    }
  }
  num_watching.fetch_sub(1);
  return is_done;
}

}  // namespace stride::internal
