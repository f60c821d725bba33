#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "server/engine/core/task.h"
#include "server/store/buffer.h"
#include "server/tenant/transaction.h"

namespace stride::engine {

// The copies of buffers in flight, by buffer and destination: migrations to a device for tasks, and
// evictions. Knows which copies became stale, and the tasks that wait for each.
//
// Global transactions begin and end copies. A tenant's transaction may change a copy of that
// tenant's buffer.
class CopiesInFlight {
 public:
  struct Copy {
    std::vector<std::shared_ptr<Task>> readers;  // each counts the copy in num_moves
    std::vector<std::shared_ptr<Task>> writers;  // uploads that wait until the copy has ended
    bool stale = false;                          // the content changed since the copy began
  };

  void Begin(GlobalTransaction&, const store::Buffer& buffer, int place) {
    copies_[{&buffer, place}];
  }
  // Requires a copy.
  Copy End(GlobalTransaction&, const store::Buffer& buffer, int place);

  bool empty(TenantTransaction&) const { return copies_.empty(); }
  bool Has(TenantTransaction&, const store::Buffer& buffer, int place) const {
    return copies_.count({&buffer, place}) > 0;
  }
  // Whether a copy to any place is in flight.
  bool IsCopied(TenantTransaction&, const store::Buffer& buffer) const;

  // Adds the task to the readers of a copy that brings its input, once. No copy: does nothing.
  void AwaitInput(TenantTransaction&, const std::shared_ptr<Task>& task,
                  const store::Buffer& buffer, int place);
  // Adds the task to the writers if it is to change a buffer in place that is being copied. False:
  // it need not wait. A thread of the daemon may read the bytes, so no upload may begin then. A
  // write by a worker only makes the copy stale.
  bool AwaitBeforeWrite(TenantTransaction&, const std::shared_ptr<Task>& task);
  // The task is about to write: copies of its outputs become stale.
  void ContentChanges(TenantTransaction&, const Task& task);

 private:
  using Copies = std::map<std::pair<const store::Buffer*, int>, Copy>;
  // The buffer's first copy, or end().
  Copies::const_iterator First(const store::Buffer& buffer) const;

  Copies copies_;
};

}  // namespace stride::engine
