#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "server/base/steady_time.h"

namespace stride::scheduler {

struct Lane;

// Whose turn it is on one device: weighted fair queueing over measured device time, in quanta. Two
// processes on one GPU only take turns, and a change costs more than a small kernel, so while
// several lanes have work only one is given new tasks at a time. A lane that has used least, by its
// weight, comes next; one that was idle starts level with the others, not ahead of them.
//
// A turn ends after a quantum, or when the lane has nothing to do; after a part of a quantum
// (`yield_after`) where a lane wakes up that has used no more than the holder, so that one that
// asks for little now and then does not wait for whole quanta of those that always have work. Then
// the tasks in flight have a short time to end; if they do not (a long or endless kernel), the next
// lane is let in all the same, and the device's own time slicing shares it between the two. A lane
// that is alone has no bound at all.
//
// Only decides: no clock, no lock, no task. Guarded by its owner's lock, but for what a lane reads
// of its own Flow.
class FairShare {
 public:
  struct Options {
    absl::Duration quantum = absl::Milliseconds(20);
    absl::Duration yield_after = absl::Milliseconds(4);  // also what may be in flight beside others
    absl::Duration hand_over = absl::Milliseconds(5);    // for what is in flight when a turn ends
  };

  // One lane's account. Belongs to the lane, and must live as long as the FairShare.
  struct Flow {
    Lane* lane = nullptr;  // for the caller
    double weight = 1;     // may be set at any time; above 0

    // The rest is FairShare's.
    double virtual_seconds = 0;  // measured device time, by weight
    // On the clock, of what is running and was not measured yet: counts as device time until then.
    double ahead_seconds = 0;
    // How far before it the lane was, by that, that was alone when this one came; by weight. What
    // that turns out to be worth is added to `virtual_seconds`.
    double behind = 0;
    const Flow* behind_of = nullptr;
    double stretch = 1;  // time on the clock for each measured second, of late
    SteadyTime running_since;
    uint64_t turn = 0;   // number of its latest turn
    bool ready = false;  // has tasks to be sent
    bool in_flight = false;
    bool woke = false;     // was idle, and has had no turn since
    bool overdue = false;  // its tasks in flight outlasted its turn; until they have ended
  };

  explicit FairShare(Options options) : options_(options) {}

  // What a lane has now; before Advance whenever that changed.
  void Update(Flow& flow, bool ready, bool in_flight, SteadyTime now);
  // A task has ended that ran this long.
  void Charge(Flow& flow, double run_seconds, SteadyTime now);
  // Ends and begins turns.
  void Advance(SteadyTime now);
  // The lane whose turn has begun since the last call, null when none has: it can be given tasks.
  Flow* TakeTurn();
  // Seconds of expected run time that the lane may have in flight now; infinite when no other
  // waits, 0 when it is not its turn.
  double Allowance(const Flow& flow, SteadyTime now) const;
  // When Advance has something to do though nothing else happened.
  SteadyTime wake() const;

 private:
  bool OthersWait(const Flow& flow) const;
  Flow* Next() const;
  SteadyTime TurnEnd() const;
  void Begin(Flow* flow, SteadyTime now);
  void ChargeAhead(Flow& flow, SteadyTime now);
  void Settle(Flow& flow, double run_seconds);

  const Options options_;
  std::vector<Flow*> active_;  // with something ready or in flight
  Flow* holder_ = nullptr;
  Flow* begun_ = nullptr;  // not yet told by TakeTurn
  double floor_ = 0;       // virtual time at which the present turn began: where newcomers start
  SteadyTime turn_start_;
  double used_seconds_ = 0;  // measured in this turn
  SteadyTime over_since_ = SteadyTime::InfiniteFuture();
  uint64_t num_turns_ = 0;
};

}  // namespace stride::scheduler
