#include "server/broker/module_cache.h"

#include <utility>

namespace stride::broker {

std::shared_ptr<const CompiledModule> ModuleCache::Find(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  modules_.splice(modules_.begin(), modules_, found->second);
  return modules_.front();
}

void ModuleCache::Put(std::shared_ptr<const CompiledModule> module) {
  absl::MutexLock lock(&mutex_);
  if (by_key_.count(module->key) != 0) return;
  bytes_ += module->size;
  modules_.push_front(module);
  by_key_[module->key] = modules_.begin();
  while (modules_.size() > 1 && (bytes_ > max_bytes_ || modules_.size() > max_modules_)) {
    bytes_ -= modules_.back()->size;
    by_key_.erase(modules_.back()->key);
    modules_.pop_back();
  }
}

}  // namespace stride::broker
