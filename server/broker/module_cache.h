#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/broker/compiled_module.h"

namespace stride::broker {

// Compiled modules in memory by key; the least recently used are evicted first. Each holds a
// descriptor, so their number is bounded as well as their bytes. Thread-safe.
class ModuleCache {
 public:
  ModuleCache(uint64_t max_bytes, size_t max_modules)
      : max_bytes_(max_bytes), max_modules_(max_modules) {}

  std::shared_ptr<const CompiledModule> Find(const std::string& key);
  void Put(std::shared_ptr<const CompiledModule> module);

 private:
  using Modules = std::list<std::shared_ptr<const CompiledModule>>;  // most recently used first

  const uint64_t max_bytes_;
  const size_t max_modules_;
  absl::Mutex mutex_;
  Modules modules_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Modules::iterator> by_key_ ABSL_GUARDED_BY(mutex_);
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace stride::broker
