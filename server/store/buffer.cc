#include "server/store/buffer.h"

#include <algorithm>
#include <utility>

#include "server/base/bits.h"
#include "server/base/status_bytes.h"

namespace stride::store {

void Reclaimer::Add(Entry entry) {
  Part& part = parts_[PartitionOf(entry.tenant)];
  absl::MutexLock lock(&part.mutex);
  part.entries.push_back(std::move(entry));
  part.any_entries.store(true, std::memory_order_release);
}

void Reclaimer::TakeAll(int partition, std::vector<Entry>* entries) {
  entries->clear();
  Part& part = parts_[partition];
  if (!part.any_entries.load(std::memory_order_acquire)) return;
  absl::MutexLock lock(&part.mutex);
  part.any_entries.store(false, std::memory_order_relaxed);
  part.entries.swap(*entries);
}

void Reclaimer::Retire(Buffer& buffer) {
  Part& part = parts_[buffer.partition];
  absl::MutexLock lock(&part.mutex);
  TakeOut(part, buffer);
  for (const auto& [device, allocation] : buffer.replicas)
    part.entries.push_back({buffer.tenant, device, allocation});
  if (!buffer.replicas.empty()) part.any_entries.store(true, std::memory_order_release);
  if (buffer.record == 0) return;
  part.dead_records.push_back(buffer.record);
  part.any_dead.store(true, std::memory_order_release);
}

std::vector<uint64_t> Reclaimer::TakeDeadRecords(int partition) {
  Part& part = parts_[partition];
  if (!part.any_dead.load(std::memory_order_acquire)) return {};
  absl::MutexLock lock(&part.mutex);
  part.any_dead.store(false, std::memory_order_relaxed);
  return std::exchange(part.dead_records, {});
}

void Reclaimer::AddChanged(std::shared_ptr<Buffer> buffer) {
  parts_[buffer->partition].changed.push_back(std::move(buffer));
}

// A Lamport clock. No two partitions return the same number.
uint64_t Reclaimer::NextUse(int partition) {
  uint64_t& count = parts_[partition].num_uses;
  count = std::max(count, num_uses_.load(std::memory_order_relaxed)) + 1;
  return count * kNumTenantPartitions + static_cast<uint64_t>(partition);
}

void Reclaimer::LevelUses() {
  ForEachBit(used_partitions(), [this](int partition) { RaiseUses(parts_[partition].num_uses); });
}

void Reclaimer::RaiseUses(uint64_t count) {
  uint64_t most = num_uses_.load(std::memory_order_relaxed);
  while (most < count && !num_uses_.compare_exchange_weak(most, count, std::memory_order_relaxed)) {
  }
}

std::shared_ptr<Buffer> Reclaimer::NextUsed(int place, bool spare, Use* after) {
  std::shared_ptr<Buffer> first;
  Use first_use;
  ForEachBit(used_partitions(), [&](int partition) {
    Use use = *after;
    std::shared_ptr<Buffer> next = NextOf(parts_[partition], place, spare, &use);
    if (next == nullptr || (first != nullptr && first_use < use)) return;
    first = std::move(next);
    first_use = use;
  });
  if (first != nullptr) *after = first_use;
  return first;
}

std::shared_ptr<Buffer> Reclaimer::NextOf(Part& part, int place, bool spare, Use* after) {
  absl::MutexLock lock(&part.mutex);
  EnterNew(part);
  Order& order = part.orders[{place, spare}];
  for (auto it = order.upper_bound(*after); it != order.end(); it = order.upper_bound(*after)) {
    // The buffer still exists: its destructor removes it from the order under this lock.
    const uint64_t last_use = it->first.buffer->last_use;
    if (it->first.time != last_use) {
      // The buffer was used since and belongs later in the order; its positions in other orders are
      // corrected in the same way.
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
  Part& part = parts_[buffer.partition];
  absl::MutexLock lock(&part.mutex);
  TakeOut(part, buffer);
  if (buffer.passing || buffer.replicas.empty()) return;
  buffer.is_new_ = true;
  buffer.newer_ = nullptr;
  buffer.older_ = part.newest;
  if (part.newest != nullptr) part.newest->newer_ = &buffer;
  part.newest = &buffer;
}

void Reclaimer::EnterNew(Part& part) {
  for (Buffer* next = part.newest; next != nullptr;) {
    Buffer& buffer = *std::exchange(next, next->older_);
    buffer.is_new_ = false;
    buffer.listed_spare_ = buffer.spare();
    for (const auto& [place, block] : buffer.replicas) {
      buffer.listed_.emplace_back(place, buffer.last_use);
      part.orders[{place, buffer.listed_spare_}].emplace(Use{buffer.last_use, &buffer},
                                                         buffer.weak_from_this());
    }
  }
  part.newest = nullptr;
}

void Reclaimer::TakeOut(Part& part, Buffer& buffer) {
  if (std::exchange(buffer.is_new_, false)) {
    (buffer.newer_ != nullptr ? buffer.newer_->older_ : part.newest) = buffer.older_;
    if (buffer.older_ != nullptr) buffer.older_->newer_ = buffer.newer_;
    return;  // not in both
  }
  for (const auto& [place, time] : buffer.listed_)
    part.orders[{place, buffer.listed_spare_}].erase(Use{time, &buffer});
  buffer.listed_.clear();
}

Buffer::~Buffer() {
  reclaimer_->Retire(*this);
  reclaimer_->Count(tenant, -size, -control_bytes_);
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

void Buffer::TakeContent(Buffer& other) {
  for (const auto& [device, block] : other.replicas) replicas.Set(device, block);
  other.replicas.map_.clear();
  inline_bytes = std::move(other.inline_bytes);
  BlocksChanged();
  other.BlocksChanged();
}

void Buffer::Spoil(const absl::Status& status) {
  if (!error.ok()) return;
  RestoreError(status);
  BlocksChanged();
}

namespace {

// Errors take memory: beyond this many the oldest is dropped, whose session has probably ended.
constexpr size_t kMostLostWrites = 64;

}  // namespace

void Buffer::LoseWrite(const std::string& session, const absl::Status& status) {
  if (!LostWriteOf(session).ok()) return;
  RestoreLostWrite({session, status});
  Changed();
}

void Buffer::RestoreLostWrite(LostWrite lost) {
  auto count = [this](const LostWrite& one, int64_t sign) {
    const int64_t bytes =
        sign * (static_cast<int64_t>(one.session.size()) + StatusBytes(one.status));
    control_bytes_ += bytes;
    reclaimer_->Count(tenant, 0, bytes);
  };
  if (lost_writes.size() == kMostLostWrites) {
    count(lost_writes.front(), -1);
    lost_writes.erase(lost_writes.begin());
  }
  count(lost, 1);
  lost_writes.push_back(std::move(lost));
}

const absl::Status& Buffer::LostWriteOf(std::string_view session) const {
  static const absl::Status& none = *new absl::Status();
  for (const LostWrite& lost : lost_writes) {
    if (lost.session == session) return lost.status;
  }
  return none;
}

void Buffer::RestoreError(const absl::Status& status) {
  error = status;
  const int64_t bytes = StatusBytes(status);
  if (bytes == 0) return;
  control_bytes_ += bytes;
  reclaimer_->Count(tenant, 0, bytes);
}

void Buffer::SetKept(uint64_t file) {
  if (std::exchange(kept, file) != file) Changed();
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
