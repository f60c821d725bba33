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

void Reclaimer::AddDead(uint64_t record, std::vector<Entry> entries) {
  absl::MutexLock lock(&mutex_);
  dead_records_.push_back(record);
  for (Entry& entry : entries) entries_.push_back(std::move(entry));
  any_dead_.store(true, std::memory_order_release);
}

std::vector<uint64_t> Reclaimer::TakeDeadRecords() {
  if (!any_dead_.load(std::memory_order_acquire)) return {};
  absl::MutexLock lock(&mutex_);
  any_dead_.store(false, std::memory_order_relaxed);
  return std::exchange(dead_records_, {});
}

std::vector<std::shared_ptr<Buffer>> Reclaimer::Residents() {
  std::vector<std::shared_ptr<Buffer>> buffers;
  absl::MutexLock lock(&mutex_);
  buffers.reserve(residents_.size());
  for (auto& [key, weak] : residents_) {
    if (auto buffer = weak.lock()) buffers.push_back(std::move(buffer));
  }
  return buffers;
}

void Reclaimer::AddResident(const std::shared_ptr<Buffer>& buffer) {
  absl::MutexLock lock(&mutex_);
  residents_.emplace(buffer.get(), buffer);
}

void Reclaimer::RemoveResident(Buffer* buffer) {
  absl::MutexLock lock(&mutex_);
  residents_.erase(buffer);
}

Buffer::~Buffer() {
  if (resident_) reclaimer_->RemoveResident(this);
  reclaimer_->Count(tenant, -size);
  if (record == 0) {
    for (auto& [device, allocation] : replicas.map_) reclaimer_->Add({tenant, device, allocation});
    return;
  }
  std::vector<Reclaimer::Entry> entries;
  for (auto& [device, allocation] : replicas.map_) entries.push_back({tenant, device, allocation});
  reclaimer_->AddDead(record, std::move(entries));
}

void Buffer::Changed() {
  if (record == 0 || std::exchange(changed, true)) return;
  reclaimer_->AddChanged(shared_from_this());
}

void Buffer::AddReplica(int device, const Allocation& allocation) {
  replicas.map_[device] = allocation;
  if (!std::exchange(resident_, true)) reclaimer_->AddResident(shared_from_this());
  Changed();
}

void Buffer::Spoil(const absl::Status& status) {
  if (!error.ok()) return;
  error = status;
  Changed();
}

void Buffer::SetKept(uint64_t file) {
  if (std::exchange(kept, file) != file) Changed();
}

void Buffer::SetLoading(bool now) {
  if (std::exchange(loading, now) != now) Changed();
}

void Buffer::SetIncoming(bool is) {
  if (incoming == is) return;
  incoming = is;
  Changed();
}

void Buffer::DropReplica(int device) {
  auto it = replicas.map_.find(device);
  if (it == replicas.map_.end()) return;
  reclaimer_->Add({tenant, device, it->second});
  replicas.map_.erase(it);
  Changed();
}

void Buffer::KeepOnly(int device) {
  bool alone = inline_bytes == nullptr && replicas.size() == 1 && replicas.count(device) == 1;
  if (alone) return;
  inline_bytes.reset();
  for (auto it = replicas.map_.begin(); it != replicas.map_.end();) {
    if (it->first == device) {
      ++it;
      continue;
    }
    reclaimer_->Add({tenant, it->first, it->second});
    it = replicas.map_.erase(it);
  }
  Changed();
}

}  // namespace stride::store
