#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "server/base/ids.h"

namespace stride::broker {

// What is to be compiled for one kind of device, by who asked for it. A tenant who has nothing
// being compiled does not wait for what others have: of these comes next who has least, among
// equals whose turn was longest ago. Jobs that nothing waits for come after all others, half as
// many at a time, in the same turns. Only decides: its owner's lock guards it.
class CompileQueue {
 public:
  struct Job {
    TenantId tenant;
    std::string key, target, code;
    bool later = false;  // nothing waits for it
  };
  // So many are compiled at once, and beyond that `most_beyond` of tenants who would have none.
  CompileQueue(int most, int most_beyond) : most_(most), most_beyond_(most_beyond) {}

  void Add(Job job);
  // Whether one may begin now.
  bool CanBegin() const { return Next() != flows_.end() || NextLater() != flows_.end(); }
  // The next one, when one may begin. It counts as being compiled until End.
  Job Begin();
  void End(const TenantId& tenant, bool later = false);

  int num_running() const { return num_running_ + num_later_running_; }
  size_t num_waiting() const { return num_waiting_; }
  // Jobs of this tenant that nothing waits for.
  size_t num_later(const TenantId& tenant) const;

 private:
  struct Flow {
    std::deque<Job> jobs, later;
    int num_running = 0, num_later_running = 0;
    uint64_t turn = 0;  // of its latest beginning
  };
  using Flows = std::map<TenantId, Flow>;  // of those who have a job
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
