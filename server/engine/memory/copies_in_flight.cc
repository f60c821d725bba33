#include "server/engine/memory/copies_in_flight.h"

#include <algorithm>
#include <cassert>

namespace stride::engine {

CopiesInFlight::Copy CopiesInFlight::End(GlobalTransaction&, const store::Buffer& buffer,
                                         int place) {
  auto node = copies_.extract({&buffer, place});
  assert(!node.empty());
  return std::move(node.mapped());
}

CopiesInFlight::Copies::const_iterator CopiesInFlight::First(const store::Buffer& buffer) const {
  auto first = copies_.lower_bound({&buffer, 0});
  return first != copies_.end() && first->first.first == &buffer ? first : copies_.end();
}

bool CopiesInFlight::IsCopied(TenantTransaction&, const store::Buffer& buffer) const {
  return First(buffer) != copies_.end();
}

void CopiesInFlight::AwaitInput(TenantTransaction&, const std::shared_ptr<Task>& task,
                                const store::Buffer& buffer, int place) {
  auto copy = copies_.find({&buffer, place});
  if (copy == copies_.end()) return;
  auto& readers = copy->second.readers;
  if (std::find(readers.begin(), readers.end(), task) != readers.end()) return;
  ++task->memory.num_moves;
  readers.push_back(task);
}

bool CopiesInFlight::AwaitBeforeWrite(TenantTransaction&, const std::shared_ptr<Task>& task) {
  if (copies_.empty()) return false;
  for (const Use& use : task->uses) {
    if (use.buffer == nullptr || !use.write || use.fresh) continue;
    auto copy = First(*use.buffer);
    if (copy == copies_.end()) continue;
    copies_[copy->first].writers.push_back(task);
    return true;
  }
  return false;
}

void CopiesInFlight::ContentChanges(TenantTransaction&, const Task& task) {
  if (copies_.empty()) return;
  for (const Use& use : task.uses) {
    if (use.buffer == nullptr || !use.write) continue;
    for (auto copy = copies_.lower_bound({use.buffer.get(), 0});
         copy != copies_.end() && copy->first.first == use.buffer.get(); ++copy) {
      copy->second.stale = true;
    }
  }
}

}  // namespace stride::engine
