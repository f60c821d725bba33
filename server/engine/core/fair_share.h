#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "server/base/steady_time.h"

namespace stride::engine {

struct DeviceQueue;

// Gives the device queues of one device their turns: weighted fair queueing over measured device
// time, in quanta. Processes on one GPU only alternate, and a switch costs more than a small
// kernel. So while several queues have work, one at a time is given new tasks. The queue that has
// used least, by its weight, comes next; one that was idle starts level with the others, not ahead
// of them.
//
// A turn ends after a quantum, or when the queue has no work. It ends after part of a quantum
// (`yield_after`) when a queue wakes up that has used no more than the holder: a queue with little
// work now and then does not wait for whole quanta of busy ones. The tasks in flight then have a
// short time to end. If they do not (a long or endless kernel), the next queue starts anyway, and
// the device's own time slicing shares the device. A queue that is alone has no bound.
//
// Only decides: no clock, no lock, no task. Its owner's lock guards it, except where a queue reads
// its own Flow.
class FairShare {
 public:
  struct Options {
    absl::Duration quantum = absl::Milliseconds(20);
    absl::Duration yield_after =
        absl::Milliseconds(4);  // also bounds time in flight when others wait
    absl::Duration hand_over = absl::Milliseconds(5);  // for tasks in flight at the end of a turn
  };

  // The account of one device queue, which owns it. Must live as long as the FairShare.
  struct Flow {
    DeviceQueue* queue = nullptr;  // for the caller
    double weight = 1;             // may be set at any time; above 0

    // FairShare owns the rest.
    double virtual_seconds = 0;  // measured device time, by weight
    // Clock time of running tasks that is not measured yet; counts as device time until then.
    double ahead_seconds = 0;
    // Unmeasured lead, by weight, of `behind_of`, which was alone when this queue arrived. Once it
    // is measured, the real part is added to `virtual_seconds`.
    double behind = 0;
    const Flow* behind_of = nullptr;
    double stretch = 1;  // recent clock time for each measured second
    SteadyTime running_since;
    uint64_t turn = 0;   // number of its latest turn
    bool ready = false;  // has tasks to send
    bool in_flight = false;
    bool woke = false;     // was idle and has had no turn since
    bool overdue = false;  // its tasks in flight outlasted its turn and have not ended
  };

  explicit FairShare(Options options) : options_(options) {}

  // Sets a queue's state. Call before Advance whenever the state changed.
  void Update(Flow& flow, bool ready, bool in_flight, SteadyTime now);
  // Charges a queue for a task that has ended.
  void Charge(Flow& flow, double run_seconds, SteadyTime now);
  // Ends and begins turns.
  void Advance(SteadyTime now);
  // Returns the queue whose turn has begun since the last call; null: none. It can be given tasks.
  Flow* TakeTurn();
  // Seconds of expected run time that the queue may have in flight now: infinite when no other
  // waits, 0 outside its turn.
  double Allowance(const Flow& flow, SteadyTime now) const;
  // The time at which Advance is due if no queue changes before.
  SteadyTime wake() const;

 private:
  bool OthersWait(const Flow& flow) const;
  Flow* Next() const;
  SteadyTime TurnEnd() const;
  void Begin(Flow* flow, SteadyTime now);
  void ChargeAhead(Flow& flow, SteadyTime now);
  void Settle(Flow& flow, double run_seconds);

  const Options options_;
  std::vector<Flow*> active_;  // those with tasks ready or in flight
  Flow* holder_ = nullptr;
  Flow* begun_ = nullptr;  // not returned by TakeTurn yet
  double floor_ = 0;       // virtual time at the start of the turn, where new queues begin
  SteadyTime turn_start_;
  double used_seconds_ = 0;  // measured in this turn
  SteadyTime over_since_ = SteadyTime::InfiniteFuture();
  uint64_t num_turns_ = 0;
};

}  // namespace stride::engine
