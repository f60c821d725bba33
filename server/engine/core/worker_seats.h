#pragma once

#include <climits>
#include <deque>
#include <vector>

#include "absl/time/time.h"
#include "server/base/steady_time.h"

namespace stride::engine {

struct DeviceQueue;

// Decides which device queues have a worker and which wait for one, first come, first served. A
// device has room for as many workers as its memory holds; all devices together, for as many as the
// machine's memory, processes and descriptors allow. A failed start lowers these bounds for a
// while. Few workers start at once, since more would only slow each other down.
//
// Only decides: no clock, no lock. Global transactions guard it.
class WorkerSeats {
 public:
  struct Options {
    int at_once = 4;  // starts in progress
    // A bound that a failed start has shown is tried again after this.
    absl::Duration lesson_time = absl::Minutes(1);
    // A full device with a device queue that has waited longer than this is crowded.
    absl::Duration crowd_patience = absl::Milliseconds(1500);
    // The pause after a start that failed for lack of resources, unless a worker ends first. It
    // doubles from the first to the longest.
    absl::Duration first_pause = absl::Milliseconds(50);
    absl::Duration longest_pause = absl::Seconds(1);
  };
  // The seat of a device queue. Its address stays valid as long as this object.
  struct Seat {
    enum class State { kNone, kWaiting, kStarting, kTaken };
    DeviceQueue* queue = nullptr;
    int device = 0;
    State state = State::kNone;
    SteadyTime since;  // the begin of this state
  };
  enum class Lack { kDevice, kMachine };

  WorkerSeats(int num_devices, Options options) : options_(options), devices_(num_devices) {}

  // The number of workers that the device's memory, or the machine, has room for; at least one.
  void set_most(int device, int most) { devices_[device].most = most; }
  void set_most_of_all(int most) { most_of_all_ = most; }
  int most(int device, SteadyTime now) const;
  int most_of_all(SteadyTime now) const;

  // Wait takes the last place in line; WaitAgain, after a lack of resources, the first.
  void Wait(Seat& seat, SteadyTime now);
  void WaitAgain(Seat& seat, SteadyTime now);
  // Removes a waiting seat from the line.
  void Leave(Seat& seat);
  // The next seat whose worker may start now; it counts as starting. Null: none may.
  Seat* Begin(SteadyTime now);
  void Started(Seat& seat, SteadyTime now);
  void Failed(Seat& seat);
  // The start failed for lack of resources; the current number of workers becomes a bound.
  void Lacked(int device, Lack lack, SteadyTime now);
  // The device is crowded: its workers do not serve all device queues in time. `most` becomes its
  // bound for a while.
  void Crowded(int device, int most, SteadyTime now);
  bool IsCrowded(int device, SteadyTime now) const;
  // The seat's worker ends or has ended.
  void Free(Seat& seat);
  // A process is gone: its resources are free.
  void Gone();

  // The first seat in line that waits only for room; null: none. `for_any`: the end of a worker on
  // any device makes room, else only on the same device.
  const Seat* Blocked(SteadyTime now, bool* for_any) const;
  bool waiting() const { return !line_.empty(); }
  // The time of the next attempt to start a worker; infinite: only another event allows one.
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
  Lesson lesson_;       // the machine's
  SteadyTime closed_until_ = SteadyTime::InfinitePast();
  absl::Duration pause_ = absl::ZeroDuration();
};

// How many workers fit into `memory`, of which `taken` has other uses, at `cost` each. At least a
// few, so that a wrong measurement blocks no tenant.
int WorkersThatFit(double memory, double taken, double cost);

}  // namespace stride::engine
