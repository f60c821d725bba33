#include "server/broker/compile_queue.h"

#include <tuple>
#include <utility>

namespace stride::broker {

void CompileQueue::Add(Job job) {
  Flow& flow = flows_[job.tenant];
  flow.jobs.push_back(std::move(job));
  ++num_waiting_;
}

CompileQueue::Flows::const_iterator CompileQueue::Next() const {
  auto next = flows_.end();
  for (auto it = flows_.begin(); it != flows_.end(); ++it) {
    const Flow& flow = it->second;
    const int most = flow.num_running == 0 ? most_ + most_beyond_ : most_;
    if (flow.jobs.empty() || num_running_ >= most) continue;
    if (next == flows_.end() || std::tie(flow.num_running, flow.turn) <
                                    std::tie(next->second.num_running, next->second.turn))
      next = it;
  }
  return next;
}

CompileQueue::Job CompileQueue::Begin() {
  Flow& flow = flows_.at(Next()->first);
  Job job = std::move(flow.jobs.front());
  flow.jobs.pop_front();
  flow.turn = ++num_turns_;
  ++flow.num_running;
  ++num_running_;
  --num_waiting_;
  return job;
}

void CompileQueue::End(const TenantId& tenant) {
  auto flow = flows_.find(tenant);
  --num_running_;
  if (--flow->second.num_running == 0 && flow->second.jobs.empty()) flows_.erase(flow);
}

}  // namespace stride::broker
