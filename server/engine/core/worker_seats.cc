#include "server/engine/core/worker_seats.h"

#include <algorithm>

namespace stride::engine {
namespace {

constexpr int kFewest = 4;

}  // namespace

int WorkerSeats::most(int device, SteadyTime now) const {
  const Device& of = devices_[device];
  return std::max(1, std::min({of.most, most_of_all_, of.lesson.Most(now), lesson_.Most(now)}));
}

int WorkerSeats::most_of_all(SteadyTime now) const {
  return std::max(1, std::min(most_of_all_, lesson_.Most(now)));
}

bool WorkerSeats::FullDevice(int device, SteadyTime now) const {
  const Device& of = devices_[device];
  return of.num_taken + of.num_starting >= std::max(1, std::min(of.most, of.lesson.Most(now)));
}

bool WorkerSeats::FullMachine(SteadyTime now) const { return num_of_all_ >= most_of_all(now); }

void WorkerSeats::Wait(Seat& seat, SteadyTime now) {
  if (seat.state != Seat::State::kNone) return;
  seat.state = Seat::State::kWaiting;
  seat.since = now;
  line_.push_back(&seat);
}

void WorkerSeats::WaitAgain(Seat& seat, SteadyTime now) {
  if (seat.state != Seat::State::kNone) return;
  seat.state = Seat::State::kWaiting;
  seat.since = now;
  line_.push_front(&seat);
}

void WorkerSeats::Leave(Seat& seat) {
  if (seat.state != Seat::State::kWaiting) return;
  line_.erase(std::find(line_.begin(), line_.end(), &seat));
  seat.state = Seat::State::kNone;
}

WorkerSeats::Seat* WorkerSeats::Begin(SteadyTime now) {
  if (num_starting_ >= options_.at_once || now < closed_until_ || FullMachine(now)) return nullptr;
  for (auto it = line_.begin(); it != line_.end(); ++it) {
    Seat* const seat = *it;
    if (FullDevice(seat->device, now)) continue;
    line_.erase(it);
    seat->state = Seat::State::kStarting;
    seat->since = now;
    ++num_starting_;
    ++num_of_all_;
    ++devices_[seat->device].num_starting;
    return seat;
  }
  return nullptr;
}

void WorkerSeats::Started(Seat& seat, SteadyTime now) {
  seat.state = Seat::State::kTaken;
  seat.since = now;
  --num_starting_;
  --devices_[seat.device].num_starting;
  ++devices_[seat.device].num_taken;
  pause_ = absl::ZeroDuration();
}

void WorkerSeats::Failed(Seat& seat) {
  seat.state = Seat::State::kNone;
  --num_starting_;
  --num_of_all_;
  --devices_[seat.device].num_starting;
}

void WorkerSeats::Lacked(int device, Lack lack, SteadyTime now) {
  const int there = lack == Lack::kMachine
                        ? num_of_all_
                        : devices_[device].num_taken + devices_[device].num_starting;
  Lesson& lesson = lack == Lack::kMachine ? lesson_ : devices_[device].lesson;
  lesson = {std::max(1, there), now + options_.lesson_time};
  pause_ = std::clamp(pause_ * 2, options_.first_pause, options_.longest_pause);
  closed_until_ = now + pause_;
}

void WorkerSeats::Crowded(int device, int most, SteadyTime now) {
  Lesson& lesson = devices_[device].lesson;
  lesson = {std::min(most, lesson.Most(now)), now + options_.lesson_time};
}

bool WorkerSeats::IsCrowded(int device, SteadyTime now) const {
  if (!FullDevice(device, now)) return false;
  const auto first = std::find_if(line_.begin(), line_.end(),
                                  [device](const Seat* seat) { return seat->device == device; });
  return first != line_.end() && now - (*first)->since > options_.crowd_patience;
}

void WorkerSeats::Free(Seat& seat) {
  if (seat.state != Seat::State::kTaken) return;
  seat.state = Seat::State::kNone;
  --num_of_all_;
  --devices_[seat.device].num_taken;
}

void WorkerSeats::Gone() { closed_until_ = SteadyTime::InfinitePast(); }

const WorkerSeats::Seat* WorkerSeats::Blocked(SteadyTime now, bool* for_any) const {
  if (num_starting_ >= options_.at_once || now < closed_until_) return nullptr;
  *for_any = FullMachine(now);
  for (const Seat* seat : line_) {
    if (*for_any || FullDevice(seat->device, now)) return seat;
  }
  return nullptr;
}

SteadyTime WorkerSeats::next_try(SteadyTime now) const {
  return line_.empty() || now >= closed_until_ ? SteadyTime::InfiniteFuture() : closed_until_;
}

int WorkersThatFit(double memory, double taken, double cost) {
  const double count = (memory - taken) / std::max(1.0, cost);
  return static_cast<int>(std::clamp<double>(count, kFewest, INT_MAX));
}

}  // namespace stride::engine
