#pragma once

#include <climits>
#include <deque>
#include <vector>

#include "absl/time/time.h"
#include "server/base/steady_time.h"

namespace stride::scheduler {

struct Lane;

// Decides which lanes have a worker and which wait for one, first come, first served. A device has
// room for as many workers as its memory holds; all devices together, for as many as the machine's
// memory, processes and descriptors allow. A failed start lowers these bounds for a while. Few
// workers start at once, since more would only slow each other down.
//
// Only decides: no clock, no lock. Global transactions guard it.
class WorkerSeats {
 public:
  struct Options {
    int at_once = 4;  // starts
    // A bound that a failed start has shown is tried again after this.
    absl::Duration lesson_time = absl::Minutes(1);
    // A full device with a lane that has waited longer than this is crowded.
    absl::Duration crowd_patience = absl::Milliseconds(1500);
    // Between a start that failed for lack and the next one, unless a worker's end comes first;
    // doubled up to the second.
    absl::Duration first_pause = absl::Milliseconds(50);
    absl::Duration longest_pause = absl::Seconds(1);
  };
  // A lane's. It neither moves nor ends before this.
  struct Seat {
    enum class State { kNone, kWaiting, kStarting, kTaken };
    Lane* lane = nullptr;
    int device = 0;
    State state = State::kNone;
    SteadyTime since;  // it is in this state
  };
  enum class Lack { kDevice, kMachine };

  WorkerSeats(int num_devices, Options options) : options_(options), devices_(num_devices) {}

  // As many as a device's own memory, or the machine, has room for; at least one.
  void set_most(int device, int most) { devices_[device].most = most; }
  void set_most_of_all(int most) { most_of_all_ = most; }
  int most(int device, SteadyTime now) const;
  int most_of_all(SteadyTime now) const;

  // Takes the last place in line; the first, where a start of it failed for lack.
  void Wait(Seat& seat, SteadyTime now);
  void WaitAgain(Seat& seat, SteadyTime now);
  // The seat's lane does not wait any more.
  void Leave(Seat& seat);
  // The next seat whose worker may start now; it counts as starting. Null: none may.
  Seat* Begin(SteadyTime now);
  void Started(Seat& seat, SteadyTime now);
  void Failed(Seat& seat);
  // The start failed for lack of resources; the current number of workers becomes a bound.
  void Lacked(int device, Lack lack, SteadyTime now);
  // More lanes want the device than its workers serve in time; `most` is its bound for a while.
  void Crowded(int device, int most, SteadyTime now);
  bool IsCrowded(int device, SteadyTime now) const;
  // The seat's worker ends or has ended.
  void Free(Seat& seat);
  // A process is gone: its resources are free.
  void Gone();

  // The first in line that only room is lacking for; null: none. `for_any`: a worker's end on any
  // device makes room, else one on the same device.
  const Seat* Blocked(SteadyTime now, bool* for_any) const;
  bool waiting() const { return !line_.empty(); }
  // After this a start is worth a try that was not now; infinite: when something else happens.
  SteadyTime next_try(SteadyTime now) const;

  int num_taken(int device) const { return devices_[device].num_taken; }
  int num_starting() const { return num_starting_; }
  int num_of_all() const { return num_of_all_; }

 private:
  // The bound that a failed start has shown.
  struct Lesson {
    int most = INT_MAX;
    SteadyTime until = SteadyTime::InfinitePast();
    int Most(SteadyTime now) const { return now < until ? most : INT_MAX; }
  };
  struct Device {
    int most = INT_MAX;
    int num_taken = 0, num_starting = 0;
    Lesson lesson;
  };
  bool FullDevice(int device, SteadyTime now) const;
  bool FullMachine(SteadyTime now) const;

  const Options options_;
  std::vector<Device> devices_;
  std::deque<Seat*> line_;
  int most_of_all_ = INT_MAX;
  int num_starting_ = 0;
  int num_of_all_ = 0;  // taken and starting
  Lesson lesson_;       // of the machine
  SteadyTime closed_until_ = SteadyTime::InfinitePast();
  absl::Duration pause_ = absl::ZeroDuration();
};

// How many workers fit into `memory`, of which `taken` has other uses, at `cost` each. At least a
// few, so that a wrong measurement blocks no tenant.
int WorkersThatFit(double memory, double taken, double cost);

}  // namespace stride::scheduler
