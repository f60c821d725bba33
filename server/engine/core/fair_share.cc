#include "server/engine/core/fair_share.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "server/base/steady_time.h"

namespace stride::engine {
namespace {

constexpr double kLeastWeight = 1e-3;
// Weight of a new ratio of clock time to measured time, and the largest ratio: for tasks so small
// that nearly all time passes between them.
constexpr double kNewShare = 0.3;
constexpr double kMostStretch = 50;

double ByWeight(double seconds, const FairShare::Flow& flow) {
  return seconds / std::max(kLeastWeight, flow.weight);
}

// The key by which queues are compared: device time by weight, as far as it is known.
double Standing(const FairShare::Flow& flow) {
  return flow.virtual_seconds + ByWeight(flow.ahead_seconds, flow) + flow.behind;
}

bool MayBeNext(const FairShare::Flow& flow) { return flow.ready && !flow.overdue; }

}  // namespace

void FairShare::Update(Flow& flow, bool ready, bool in_flight, SteadyTime now) {
  bool was_active = flow.ready || flow.in_flight;
  bool active = ready || in_flight;
  if (!was_active && active) {
    // A new queue gets no compensation for the time that another used alone.
    const bool one_is_alone = holder_ != nullptr && !OthersWait(*holder_);
    if (one_is_alone) floor_ = std::max(floor_, holder_->virtual_seconds);
    flow.virtual_seconds = std::max(flow.virtual_seconds, floor_);
    if (one_is_alone) {
      ChargeAhead(*holder_, now);
      flow.behind = std::max(0.0, Standing(*holder_) - flow.virtual_seconds);
      flow.behind_of = holder_;
    }
    flow.woke = true;
    active_.push_back(&flow);
  }
  if (in_flight && !flow.in_flight) flow.running_since = now;
  if (!in_flight) {
    Settle(flow, 0);
    flow.overdue = false;
  }
  flow.ready = ready;
  flow.in_flight = in_flight;
  if (was_active && !active) {
    active_.erase(std::find(active_.begin(), active_.end(), &flow));
    flow.behind = 0;
    flow.behind_of = nullptr;
  }
}

void FairShare::Charge(Flow& flow, double run_seconds, SteadyTime now) {
  Settle(flow, run_seconds);
  flow.running_since = now;
  if (&flow != holder_) return;
  used_seconds_ += std::min(run_seconds, absl::ToDoubleSeconds(now - turn_start_));
  if (!OthersWait(flow)) floor_ = std::max(floor_, flow.virtual_seconds);
}

// Charges the clock time since the queue's last task ended, which is not measured yet.
void FairShare::ChargeAhead(Flow& flow, SteadyTime now) {
  if (!flow.in_flight) return;
  flow.ahead_seconds += std::max(0.0, absl::ToDoubleSeconds(now - flow.running_since));
  flow.running_since = now;
}

// Replaces clock time by measured time. Small tasks spend most clock time between them, or while a
// busy host does not run their process.
void FairShare::Settle(Flow& flow, double run_seconds) {
  const double ahead = std::exchange(flow.ahead_seconds, 0);
  flow.virtual_seconds += ByWeight(run_seconds, flow);
  if (ahead == 0) return;
  const double worth = std::min(1.0, run_seconds / ahead);
  for (Flow* other : active_) {
    if (other->behind_of != &flow) continue;
    other->virtual_seconds += worth * std::exchange(other->behind, 0);
    other->behind_of = nullptr;
  }
}

void FairShare::Advance(SteadyTime now) {
  if (holder_ != nullptr && !holder_->ready && !holder_->in_flight) holder_ = nullptr;
  if (holder_ == nullptr) {
    Begin(Next(), now);
    return;
  }
  if (!OthersWait(*holder_)) {
    over_since_ = SteadyTime::InfiniteFuture();
    return;
  }
  if (over_since_ == SteadyTime::InfiniteFuture()) {
    const bool over = now >= TurnEnd() || absl::Seconds(used_seconds_) >= options_.quantum;
    if (!over && !holder_->overdue) return;
    ChargeAhead(*holder_, now);
    over_since_ = now;
  }
  Flow* next = Next();
  if (next == holder_) {
    Begin(next, now);
  } else if (!holder_->in_flight) {
    if (used_seconds_ > 0) {
      double stretch = absl::ToDoubleSeconds(now - turn_start_) / used_seconds_;
      holder_->stretch += kNewShare * (std::clamp(stretch, 1.0, kMostStretch) - holder_->stretch);
    }
    Begin(next, now);
  } else if (holder_->overdue || now >= over_since_ + options_.hand_over) {
    holder_->overdue = true;
    Begin(next, now);
  }
}

FairShare::Flow* FairShare::TakeTurn() { return std::exchange(begun_, nullptr); }

double FairShare::Allowance(const Flow& flow, SteadyTime now) const {
  if (&flow != holder_) return 0;
  double quantum = absl::ToDoubleSeconds(options_.quantum);
  if (!OthersWait(flow)) {
    // An overdue queue may be in use again at any moment.
    bool alone = std::none_of(active_.begin(), active_.end(),
                              [&](const Flow* other) { return other != &flow && other->ready; });
    return alone ? std::numeric_limits<double>::infinity() : quantum / flow.stretch;
  }
  if (over_since_ != SteadyTime::InfiniteFuture()) return 0;
  const double left = absl::ToDoubleSeconds(std::min(TurnEnd() - now, options_.yield_after));
  return std::max(0.0, std::min(quantum - used_seconds_, left / flow.stretch));
}

SteadyTime FairShare::wake() const {
  if (holder_ == nullptr || !OthersWait(*holder_)) return SteadyTime::InfiniteFuture();
  if (over_since_ != SteadyTime::InfiniteFuture()) return over_since_ + options_.hand_over;
  return TurnEnd();
}

// End of the holder's turn while others wait. The next turn may be the holder's too, if it has
// still used least.
SteadyTime FairShare::TurnEnd() const {
  const bool one_woke = std::any_of(active_.begin(), active_.end(), [&](const Flow* other) {
    return other != holder_ && other->woke && MayBeNext(*other);
  });
  return turn_start_ + (one_woke ? options_.yield_after : options_.quantum);
}

bool FairShare::OthersWait(const Flow& flow) const {
  return std::any_of(active_.begin(), active_.end(),
                     [&](const Flow* other) { return other != &flow && MayBeNext(*other); });
}

// The queue that used least; among equals the one that waited longest. Overdue queues come last:
// their new tasks only line up after their own.
FairShare::Flow* FairShare::Next() const {
  Flow* next = nullptr;
  auto before = [](const Flow& a, const Flow& b) {
    if (a.overdue != b.overdue) return b.overdue;
    if (Standing(a) != Standing(b)) return Standing(a) < Standing(b);
    return a.turn < b.turn;
  };
  for (Flow* flow : active_) {
    if (flow->ready && (next == nullptr || before(*flow, *next))) next = flow;
  }
  return next;
}

void FairShare::Begin(Flow* flow, SteadyTime now) {
  holder_ = begun_ = flow;
  over_since_ = SteadyTime::InfiniteFuture();
  if (flow == nullptr) return;
  turn_start_ = now;
  used_seconds_ = 0;
  flow->woke = false;
  flow->turn = ++num_turns_;
  floor_ = std::max(floor_, flow->virtual_seconds);
}

}  // namespace stride::engine
