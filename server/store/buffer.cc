#include "server/store/buffer.h"

#include <utility>

namespace stride::store {

void Reclaimer::Add(Entry entry) {
  absl::MutexLock lock(&mutex_);
  entries_.push_back(std::move(entry));
}

std::vector<Reclaimer::Entry> Reclaimer::TakeAll() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(entries_, {});
}

Buffer::~Buffer() {
  for (auto& [device, allocation] : replicas) reclaimer_->Add({tenant, device, allocation});
  reclaimer_->Count(tenant, -size);
}

void Buffer::DropReplica(int device) {
  auto it = replicas.find(device);
  if (it == replicas.end()) return;
  reclaimer_->Add({tenant, device, it->second});
  replicas.erase(it);
}

void Buffer::KeepOnly(int device) {
  inline_bytes.reset();
  for (auto it = replicas.begin(); it != replicas.end();) {
    if (it->first == device) {
      ++it;
      continue;
    }
    reclaimer_->Add({tenant, it->first, it->second});
    it = replicas.erase(it);
  }
}

}  // namespace stride::store
