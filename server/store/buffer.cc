#include "server/store/buffer.h"

#include <utility>

namespace stride::store {

void Reclaimer::Add(Entry entry) {
  absl::MutexLock lock(&mutex_);
  entries_.push_back(std::move(entry));
}

void Reclaimer::TakeAll(std::vector<Entry>* entries) {
  entries->clear();
  absl::MutexLock lock(&mutex_);
  entries_.swap(*entries);
}

void Reclaimer::Retire(Buffer& buffer) {
  absl::MutexLock lock(&mutex_);
  TakeOut(buffer);
  for (const auto& [device, allocation] : buffer.replicas)
    entries_.push_back({buffer.tenant, device, allocation});
  if (buffer.record == 0) return;
  dead_records_.push_back(buffer.record);
  any_dead_.store(true, std::memory_order_release);
}

std::vector<uint64_t> Reclaimer::TakeDeadRecords() {
  if (!any_dead_.load(std::memory_order_acquire)) return {};
  absl::MutexLock lock(&mutex_);
  any_dead_.store(false, std::memory_order_relaxed);
  return std::exchange(dead_records_, {});
}

std::shared_ptr<Buffer> Reclaimer::NextUsed(int place, bool spare, Use* after) {
  absl::MutexLock lock(&mutex_);
  EnterNew();
  Order& order = orders_[{place, spare}];
  for (auto it = order.upper_bound(*after); it != order.end(); it = order.upper_bound(*after)) {
    // It cannot be gone: before that it has to be taken out here.
    const uint64_t last_use = it->first.buffer->last_use;
    if (it->first.time != last_use) {
      // It was used since, and belongs further back; in its other places that shows in time.
      Buffer& moved = *it->first.buffer;
      std::weak_ptr<Buffer> held = std::move(it->second);
      order.erase(it);
      order.emplace(Use{last_use, &moved}, std::move(held));
      for (auto& [listed_place, time] : moved.listed_) {
        if (listed_place == place) time = last_use;
      }
      continue;
    }
    *after = it->first;
    if (auto buffer = it->second.lock()) return buffer;
  }
  return nullptr;
}

void Reclaimer::List(Buffer& buffer) {
  absl::MutexLock lock(&mutex_);
  TakeOut(buffer);
  if (buffer.passing || buffer.replicas.empty()) return;
  buffer.is_new_ = true;
  buffer.newer_ = nullptr;
  buffer.older_ = newest_;
  if (newest_ != nullptr) newest_->newer_ = &buffer;
  newest_ = &buffer;
}

void Reclaimer::EnterNew() {
  for (Buffer* next = newest_; next != nullptr;) {
    Buffer& buffer = *std::exchange(next, next->older_);
    buffer.is_new_ = false;
    buffer.listed_spare_ = buffer.spare();
    for (const auto& [place, block] : buffer.replicas) {
      buffer.listed_.emplace_back(place, buffer.last_use);
      orders_[{place, buffer.listed_spare_}].emplace(Use{buffer.last_use, &buffer},
                                                     buffer.weak_from_this());
    }
  }
  newest_ = nullptr;
}

void Reclaimer::TakeOut(Buffer& buffer) {
  if (std::exchange(buffer.is_new_, false)) {
    (buffer.newer_ != nullptr ? buffer.newer_->older_ : newest_) = buffer.older_;
    if (buffer.older_ != nullptr) buffer.older_->newer_ = buffer.newer_;
    return;  // not in both
  }
  for (const auto& [place, time] : buffer.listed_)
    orders_[{place, buffer.listed_spare_}].erase(Use{time, &buffer});
  buffer.listed_.clear();
}

Buffer::~Buffer() {
  reclaimer_->Retire(*this);
  reclaimer_->Count(tenant, -size);
}

void Buffer::BlocksChanged() {
  reclaimer_->List(*this);
  Changed();
}

void Buffer::Changed() {
  if (record == 0 || std::exchange(changed, true)) return;
  reclaimer_->AddChanged(shared_from_this());
}

void Replicas::Set(int device, const Allocation& allocation) {
  auto place = std::find_if(map_.begin(), map_.end(),
                            [&](const auto& entry) { return entry.first >= device; });
  if (place == map_.end() || place->first != device) place = map_.insert(place, {device, {}});
  place->second = allocation;
}

void Buffer::AddReplica(int device, const Allocation& allocation) {
  replicas.Set(device, allocation);
  BlocksChanged();
}

void Buffer::Spoil(const absl::Status& status) {
  if (!error.ok()) return;
  error = status;
  BlocksChanged();
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
  auto it = replicas.find(device);
  if (it == replicas.end()) return;
  reclaimer_->Add({tenant, device, it->second});
  replicas.map_.erase(it);
  BlocksChanged();
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
  BlocksChanged();
}

}  // namespace stride::store
