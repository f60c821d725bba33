#include "server/broker/compile_queue.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace stride::broker {
void CompileQueue::Add(Job job) {
  Flow& flow = flows_[job.tenant];
  (job.later ? flow.later : flow.jobs).push_back(std::move(job));
  ++num_waiting_;
}

size_t CompileQueue::num_later(const TenantId& tenant) const {
  auto flow = flows_.find(tenant);
  return flow == flows_.end() ? 0 : flow->second.later.size();
}

bool CompileQueue::ComesBefore(const Flow& flow, const Flow& other) {
  return std::tie(flow.num_running, flow.turn) < std::tie(other.num_running, other.turn);
}

CompileQueue::Flows::const_iterator CompileQueue::Next() const {
  auto next = flows_.end();
  for (auto it = flows_.begin(); it != flows_.end(); ++it) {
    const Flow& flow = it->second;
    const int most = flow.num_running == 0 ? most_ + most_beyond_ : most_;
    if (flow.jobs.empty() || num_running_ >= most) continue;
    if (next == flows_.end() || ComesBefore(flow, next->second)) next = it;
  }
  return next;
}

CompileQueue::Flows::const_iterator CompileQueue::NextLater() const {
  auto next = flows_.end();
  if (num_later_running_ >= std::max(most_ / 2, 1) || num_running_ >= most_) return next;
  for (auto it = flows_.begin(); it != flows_.end(); ++it) {
    if (it->second.later.empty()) continue;
    if (next == flows_.end() || ComesBefore(it->second, next->second)) next = it;
  }
  return next;
}

CompileQueue::Job CompileQueue::Begin() {
  auto next = Next();
  const bool later = next == flows_.end();
  if (later) next = NextLater();
  Flow& flow = flows_.at(next->first);
  std::deque<Job>& jobs = later ? flow.later : flow.jobs;
  Job job = std::move(jobs.front());
  jobs.pop_front();
  flow.turn = ++num_turns_;
  ++(later ? flow.num_later_running : flow.num_running);
  ++(later ? num_later_running_ : num_running_);
  --num_waiting_;
  return job;
}

void CompileQueue::End(const TenantId& tenant, bool later) {
  auto found = flows_.find(tenant);
  Flow& flow = found->second;
  --(later ? flow.num_later_running : flow.num_running);
  --(later ? num_later_running_ : num_running_);
  if (flow.num_running + flow.num_later_running == 0 && flow.jobs.empty() && flow.later.empty())
    flows_.erase(found);
}

}  // namespace stride::broker
