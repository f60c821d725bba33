#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/environment.h"

namespace stride::testing {

// Time that only the test advances. Work of executors and timers runs on the test's thread, in
// order, when the test calls RunAll or Advance. Create it before any Timer or Executor.
class ManualEnvironment : public Environment {
 public:
  ManualEnvironment() { simulated_environment = this; }
  ~ManualEnvironment() override { simulated_environment = nullptr; }

  // Runs executors' work, and timers that are due, until none is left.
  void RunAll() {
    while (Step(now_)) {
    }
  }
  // RunAll at each moment of the next `time` at which a timer is due, and at its end.
  void Advance(absl::Duration time) { AdvanceTo(now_ + time); }

  SteadyTime Now() override { return now_; }
  absl::Time WallNow() override { return absl::FromUnixSeconds(1'700'000'000) + (now_ - kStart); }
  void At(const void* owner, SteadyTime time, std::function<void()> work) override {
    timed_.emplace(time, Work{owner, std::move(work)});
  }
  void Run(const void* owner, std::function<void()> work) override {
    ready_.push_back({owner, std::move(work)});
  }
  void Forget(const void* owner) override {
    for (auto it = timed_.begin(); it != timed_.end();)
      it = it->second.owner == owner ? timed_.erase(it) : std::next(it);
  }
  void Finish(const void*) override { RunAll(); }
  void Wait(const std::function<bool()>& ready, SteadyTime deadline) override {
    while (!ready()) {
      if (Step(now_) || Step(deadline)) continue;
      if (deadline == SteadyTime::InfiniteFuture())
        throw std::runtime_error("a wait without an end: no work is left");
      now_ = std::max(now_, deadline);
      return;
    }
  }
  std::string RandomId(int) override { return absl::StrCat("id", ++num_ids_); }

 private:
  struct Work {
    const void* owner;
    std::function<void()> work;
  };
  static constexpr SteadyTime kStart = SteadyTime::SinceBoot(absl::Seconds(1000));

  // Runs the next work up to `time`. False: there is none.
  bool Step(SteadyTime time) {
    Work next;
    if (!ready_.empty()) {
      next = std::move(ready_.front());
      ready_.pop_front();
    } else if (!timed_.empty() && timed_.begin()->first <= time) {
      now_ = std::max(now_, timed_.begin()->first);
      next = std::move(timed_.begin()->second);
      timed_.erase(timed_.begin());
    } else {
      return false;
    }
    next.work();
    return true;
  }
  void AdvanceTo(SteadyTime time) {
    while (Step(time)) {
    }
    now_ = time;
  }

  SteadyTime now_ = kStart;
  std::deque<Work> ready_;
  std::multimap<SteadyTime, Work> timed_;
  int num_ids_ = 0;
};

}  // namespace stride::testing
