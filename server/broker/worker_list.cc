#include "server/broker/worker_list.h"

#include <utility>

namespace stride::broker {

void WorkerList::Add(std::shared_ptr<ListedWorker> worker) {
  bool ended;
  {
    absl::MutexLock lock(&mutex_);
    workers_[worker->id()] = worker;
    ended = ended_;
  }
  if (ended) worker->Retire();
}

void WorkerList::Remove(uint64_t id) {
  // Perhaps the last reference, which is released without the lock.
  std::shared_ptr<ListedWorker> worker;
  absl::MutexLock lock(&mutex_);
  auto found = workers_.find(id);
  worker = std::move(found->second);
  workers_.erase(found);
}

void WorkerList::EndAll() {
  std::vector<std::shared_ptr<ListedWorker>> workers;
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
    for (auto& [id, worker] : workers_) workers.push_back(worker);
  }
  for (auto& worker : workers) worker->Retire();
  absl::MutexLock lock(&mutex_);
  auto empty = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return workers_.empty(); };
  mutex_.Await(absl::Condition(&empty));
}

}  // namespace stride::broker
