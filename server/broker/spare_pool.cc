#include "server/broker/spare_pool.h"

#include <algorithm>
#include <utility>

#include "server/base/environment.h"

namespace stride::broker {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(500);
constexpr absl::Duration kLongestPause = absl::Seconds(30);

}  // namespace

SparePool::SparePool(int num_devices, int num_spares, Start start)
    : num_spares_(num_spares),
      start_(std::move(start)),
      shelves_(num_devices),
      thread_([this] { Run(); }) {}

std::shared_ptr<Worker> SparePool::Take(int device) {
  absl::MutexLock lock(&mutex_);
  auto& ready = shelves_[device].ready;
  changed_ = true;
  while (!ready.empty()) {
    std::shared_ptr<Worker> worker = std::move(ready.back());
    ready.pop_back();
    if (worker->alive()) return worker;
  }
  return nullptr;
}

void SparePool::Prune() {
  absl::MutexLock lock(&mutex_);
  for (Shelf& shelf : shelves_) {
    auto dead = std::remove_if(shelf.ready.begin(), shelf.ready.end(),
                               [](const auto& worker) { return !worker->alive(); });
    shelf.ready.erase(dead, shelf.ready.end());
  }
  changed_ = true;
}

void SparePool::Stop() {
  std::vector<Shelf> shelves;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    shelves = shelves_;
    for (Shelf& shelf : shelves_) shelf.ready.clear();
  }
  if (thread_.joinable()) thread_.join();
}

int SparePool::NextDevice(SteadyTime* next) {
  SteadyTime now = Now();
  *next = SteadyTime::InfiniteFuture();
  for (size_t i = 0; i < shelves_.size(); ++i) {
    if (static_cast<int>(shelves_[i].ready.size()) >= num_spares_) continue;
    if (shelves_[i].next_try <= now) return static_cast<int>(i);
    *next = std::min(*next, shelves_[i].next_try);
  }
  return -1;
}

void SparePool::Shelve(int device, absl::StatusOr<std::shared_ptr<Worker>> worker) {
  Shelf& shelf = shelves_[device];
  // A worker that has died since was not on the shelf when Prune ran.
  if (worker.ok() && (*worker)->alive()) {
    shelf.pause = absl::ZeroDuration();
    if (!stopping_) shelf.ready.push_back(*std::move(worker));
    return;
  }
  shelf.pause = std::clamp(shelf.pause * 2, kFirstPause, kLongestPause);
  shelf.next_try = Now() + shelf.pause;
}

void SparePool::Run() {
  auto woken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || changed_; };
  absl::MutexLock lock(&mutex_);
  while (!stopping_) {
    SteadyTime next;
    int device = NextDevice(&next);
    if (device < 0) {
      changed_ = false;
      Await(mutex_, absl::Condition(&woken), next);
      continue;
    }
    mutex_.Unlock();
    auto worker = start_(device);
    mutex_.Lock();
    Shelve(device, std::move(worker));
  }
}

}  // namespace stride::broker
