#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/base/environment.h"

namespace stride::simulation {

// A clock, a queue of events and a source of randomness. All actions are events, one after another;
// only the seed decides their order. Blocking work (of an executor, or a client's call) has its own
// thread, but only one thread ever runs: it hands over when it waits or ends. Not thread-safe for
// that reason.
class World : public Environment {
 public:
  explicit World(uint64_t seed);
  ~World() override;

  // Environment. `Run` starts its work after a delay, like a thread.
  SteadyTime Now() override { return now_; }
  absl::Time WallNow() override { return wall_start_ + (now_ - kStart); }
  void At(const void* owner, SteadyTime time, std::function<void()> work) override;
  void Run(const void* owner, std::function<void()> work) override;
  void Forget(const void* owner) override;
  void Finish(const void* owner) override;
  void Wait(const std::function<bool()>& ready, SteadyTime deadline) override;
  std::string RandomId(int length) override;

  // An administrator sets the wall clock.
  void StepWallClock(absl::Duration by) { wall_start_ += by; }

  // Runs `work` at once, until it ends or waits; it may block. Not from within such work.
  void Call(std::function<void()> work);
  void Sleep(absl::Duration time);

  // Runs the next event, or a waiting thread that need not wait any more. Returns false if nothing
  // is left.
  bool Step();
  // Returns whether an event happens by then; if not, advances the clock to then.
  bool Comes(SteadyTime time);
  uint64_t num_steps() const { return num_steps_; }

  uint64_t Below(uint64_t bound) { return bound == 0 ? 0 : random_() % bound; }
  bool Chance(double probability) {
    return static_cast<double>(random_() >> 11) * 0x1p-53 < probability;
  }
  // Mostly short, sometimes far longer: orders that are rare on a machine are common here.
  absl::Duration Latency();

  // The last of these are printed on a failure.
  template <typename... Args>
  void Note(const Args&... args) {
    NoteLine(absl::StrCat(args...));
  }
  std::string Trace() const;
  // A hash of all lines ever noted: equal for equal seeds.
  uint64_t trace_hash() const { return trace_hash_; }
  void set_verbose(bool verbose) { verbose_ = verbose; }

  // The failure; the first is kept.
  template <typename... Args>
  void Fail(const Args&... args) {
    if (failure_.empty()) failure_ = absl::StrCat(args...);
  }
  const std::string& failure() const { return failure_; }

 private:
  struct Fiber {
    std::binary_semaphore go{0};
    std::function<void()> work;
    const void* owner = nullptr;
    const std::function<bool()>* ready = nullptr;  // it waits for this
    SteadyTime deadline;
    std::thread thread;
  };
  struct Event {
    const void* owner;
    std::function<void()> work;
    bool may_block;
  };
  void NoteLine(std::string line);
  void Loop(Fiber* fiber);
  void Resume(Fiber* fiber);
  void StartFiber(const void* owner, std::function<void()> work);

  static constexpr SteadyTime kStart = SteadyTime::SinceBoot(absl::Seconds(1000));

  SteadyTime now_ = kStart;
  absl::Time wall_start_ = absl::FromUnixSeconds(1'700'000'000);
  std::mt19937_64 random_;
  std::map<std::pair<SteadyTime, uint64_t>, Event> events_;
  uint64_t next_event_ = 0;
  uint64_t num_steps_ = 0;
  std::map<const void*, int> unfinished_;  // work of executors
  std::list<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  std::list<Fiber*> waiting_;
  Fiber* current_ = nullptr;  // null if the main thread runs
  std::binary_semaphore main_{0};
  std::deque<std::string> trace_;
  uint64_t trace_hash_ = 0;
  bool verbose_ = false;
  std::string failure_;
};

}  // namespace stride::simulation
