#include "tests/simulation/world.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "server/base/environment.h"

namespace stride::simulation {
namespace {

constexpr size_t kTraceLines = 400;

}  // namespace

World::World(uint64_t seed) : random_(seed) { simulated_environment = this; }

World::~World() {
  for (auto& fiber : fibers_) {
    fiber->work = nullptr;
    fiber->go.release();
    fiber->thread.join();
  }
  simulated_environment = nullptr;
}

void World::At(const void* owner, SteadyTime time, std::function<void()> work) {
  events_[{std::max(time, now_), next_event_++}] = {owner, std::move(work), false};
}

void World::Run(const void* owner, std::function<void()> work) {
  ++unfinished_[owner];
  events_[{now_ + Latency() / 10, next_event_++}] = {owner, std::move(work), true};
}

void World::Forget(const void* owner) {
  for (auto it = events_.begin(); it != events_.end();) {
    it = it->second.owner == owner ? events_.erase(it) : std::next(it);
  }
}

void World::Finish(const void* owner) {
  Wait([&] { return unfinished_.count(owner) == 0; }, SteadyTime::InfiniteFuture());
}

void World::Wait(const std::function<bool()>& ready, SteadyTime deadline) {
  if (ready() || now_ >= deadline) return;
  if (deadline != SteadyTime::InfiniteFuture()) At(nullptr, deadline, nullptr);
  if (current_ == nullptr) {
    while (!ready() && now_ < deadline) {
      if (!Step()) {
        std::fprintf(stderr, "%sit waits for ever\n", Trace().c_str());
        std::abort();
      }
    }
    return;
  }
  Fiber* self = current_;
  self->ready = &ready;
  self->deadline = deadline;
  waiting_.push_back(self);
  main_.release();
  self->go.acquire();
}

void World::Sleep(absl::Duration time) {
  Wait([] { return false; }, now_ + time);
}

std::string World::RandomId(int length) {
  std::string id;
  for (int i = 0; i < length; ++i) id += static_cast<char>('a' + Below(26));
  return id;
}

void World::Call(std::function<void()> work) { StartFiber(nullptr, std::move(work)); }

bool World::Step() {
  ++num_steps_;
  std::vector<Fiber*> ready;
  for (Fiber* fiber : waiting_) {
    if (now_ >= fiber->deadline || (*fiber->ready)()) ready.push_back(fiber);
  }
  if (!ready.empty()) {
    Fiber* fiber = ready[Below(ready.size())];
    waiting_.remove(fiber);
    Resume(fiber);
    return true;
  }
  if (events_.empty()) return false;
  auto first = events_.begin();
  now_ = std::max(now_, first->first.first);
  Event event = std::move(first->second);
  events_.erase(first);
  if (event.may_block) {
    StartFiber(event.owner, std::move(event.work));
  } else if (event.work) {
    event.work();
  }
  return true;
}

bool World::Comes(SteadyTime time) {
  bool ready = std::any_of(waiting_.begin(), waiting_.end(), [this](Fiber* fiber) {
    return now_ >= fiber->deadline || (*fiber->ready)();
  });
  if (ready || (!events_.empty() && events_.begin()->first.first <= time)) return true;
  now_ = std::max(now_, time);
  return false;
}

void World::StartFiber(const void* owner, std::function<void()> work) {
  if (idle_.empty()) {
    Fiber* fiber = fibers_.emplace_back(std::make_unique<Fiber>()).get();
    fiber->thread = std::thread([this, fiber] { Loop(fiber); });
    idle_.push_back(fiber);
  }
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  fiber->owner = owner;
  fiber->work = std::move(work);
  Resume(fiber);
}

void World::Resume(Fiber* fiber) {
  current_ = fiber;
  fiber->go.release();
  main_.acquire();
  current_ = nullptr;
}

void World::Loop(Fiber* fiber) {
  for (;;) {
    fiber->go.acquire();
    if (fiber->work == nullptr) return;
    fiber->work();
    fiber->work = nullptr;
    auto count = unfinished_.find(fiber->owner);
    if (count != unfinished_.end() && --count->second == 0) unfinished_.erase(count);
    idle_.push_back(fiber);
    main_.release();
  }
}

absl::Duration World::Latency() {
  double scale = Chance(0.9) ? 100e-6 : Chance(0.8) ? 5e-3 : 200e-3;
  return absl::Nanoseconds(
      1 + static_cast<int64_t>(scale * 1e9 * static_cast<double>(Below(1000)) / 1000));
}

void World::NoteLine(std::string line) {
  line = absl::StrCat(absl::ToInt64Microseconds(now_ - kStart), " us: ", line);
  for (char c : line) trace_hash_ = (trace_hash_ ^ static_cast<unsigned char>(c)) * 1099511628211u;
  if (verbose_) std::fprintf(stderr, "%s\n", line.c_str());
  trace_.push_back(std::move(line));
  if (trace_.size() > kTraceLines) trace_.pop_front();
}

std::string World::Trace() const {
  std::string text;
  for (const std::string& line : trace_) absl::StrAppend(&text, line, "\n");
  return text;
}

}  // namespace stride::simulation
