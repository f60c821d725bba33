#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "server/base/ids.h"

namespace stride::broker {

// Pending compilations for one kind of device, grouped by tenant. A tenant with no compilation in
// flight may exceed the common limit, so it does not wait for other tenants' code. The next job is
// that of the tenant with the fewest in flight, then of the one that began longest ago. Background
// jobs (`later`) come last, at most half as many at a time, in the same order. Pure bookkeeping,
// guarded by the owner's lock.
class CompileQueue {
 public:
  struct Job {
    TenantId tenant;
    std::string key, target, code;
    bool later = false;  // no caller waits for it
  };
  // At most `most` jobs run at once, plus `most_beyond` jobs of tenants that would have none.
  CompileQueue(int most, int most_beyond) : most_(most), most_beyond_(most_beyond) {}

  void Add(Job job);
  // Whether a job may begin now.
  bool CanBegin() const { return Next() != flows_.end() || NextLater() != flows_.end(); }
  // Takes the next job. Requires CanBegin(). The job counts as running until End.
  Job Begin();
  void End(const TenantId& tenant, bool later = false);

  int num_running() const { return num_running_ + num_later_running_; }
  size_t num_waiting() const { return num_waiting_; }
  // Number of background jobs of this tenant.
  size_t num_later(const TenantId& tenant) const;

 private:
  struct Flow {
    std::deque<Job> jobs, later;
    int num_running = 0, num_later_running = 0;
    uint64_t turn = 0;  // value of num_turns_ when its latest job began
  };
  using Flows = std::map<TenantId, Flow>;  // tenants with a pending or running job
  Flows::const_iterator Next() const;
  Flows::const_iterator NextLater() const;
  static bool ComesBefore(const Flow& flow, const Flow& other);

  const int most_, most_beyond_;
  Flows flows_;
  int num_running_ = 0, num_later_running_ = 0;
  size_t num_waiting_ = 0;
  uint64_t num_turns_ = 0;
};

}  // namespace stride::broker
