#include "client/cpp/src/shared_memory.h"

#include <algorithm>
#include <bit>

namespace stride::internal {
namespace {

// Pause between requests to a daemon that offers no region.
constexpr auto kPauseTime = std::chrono::seconds(10);

}  // namespace

bool IsOfRegion(const Error& error) {
  if (error.code == Code::kUnimplemented || error.code == Code::kResourceExhausted) return true;
  auto name = error.metadata.find("name");
  return error.code == Code::kNotFound && name != error.metadata.end() &&
         name->second.find("/regions/") != std::string::npos;
}

Error RegionGone() {
  Error error;
  error.code = Code::kUnimplemented;
  error.message = "The region has gone with its daemon";
  return error;
}

bool SharedMemory::Trying() {
  std::lock_guard lock(mutex_);
  return std::chrono::steady_clock::now() >= next_try_;
}

std::optional<SharedMemory::Lease> SharedMemory::TryLease(int64_t size, int64_t bytes) {
  if (!by_itself_ || !channels_.by_unix_socket() || !Trying()) return std::nullopt;
  std::unique_lock held(bounce_mutex_, std::try_to_lock);
  if (!held || (bounce_ == nullptr && size < kMinFirstBytes)) return std::nullopt;
  auto session = session_.Name();
  if (!session) return std::nullopt;
  if (bounce_ != nullptr && bounce_->session() != *session) bounce_.reset();
  if (bounce_ == nullptr || bounce_->size() < bytes) {
    if (auto old = std::exchange(bounce_, nullptr)) old->Delete(channels_);
    // Few sizes, so that it rarely has to grow.
    const auto whole = std::max(kLeastBounceBytes,
                                static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bytes))));
    auto made = SharedRegion::Create(channels_, *session, whole);
    if (!made) {
      Pause();
      return std::nullopt;
    }
    bounce_ = *std::move(made);
  }
  return Lease{bounce_, std::move(held)};
}

void SharedMemory::Drop(const Lease& lease, bool pause) {
  lease.region->Delete(channels_);
  bounce_.reset();
  if (pause) Pause();
}

void SharedMemory::Pause() {
  std::lock_guard lock(mutex_);
  next_try_ = std::chrono::steady_clock::now() + kPauseTime;
}

void SharedMemory::Forget(const std::shared_ptr<SharedRegion>& region) {
  std::lock_guard lock(mutex_);
  users_.erase(region->data());
}

Result<std::shared_ptr<SharedRegion>> SharedMemory::Allocate(int64_t bytes) {
  if (!channels_.by_unix_socket()) {
    Error error;
    error.code = Code::kUnimplemented;
    error.message = "Memory is shared only with a daemon on this machine, by its Unix socket";
    return error;
  }
  auto session = session_.Name();
  if (!session) return session.error();
  auto made = SharedRegion::Create(channels_, *session, bytes);
  if (!made) return made;
  std::lock_guard lock(mutex_);
  users_[(*made)->data()] = *made;
  return made;
}

void SharedMemory::Release(const std::shared_ptr<SharedRegion>& region) {
  Forget(region);
  region->Delete(channels_);
}

std::shared_ptr<SharedRegion> SharedMemory::Find(const std::byte* data, size_t size) {
  std::lock_guard lock(mutex_);
  auto it = users_.upper_bound(data);
  if (it == users_.begin()) return nullptr;
  const auto& region = std::prev(it)->second;
  const auto offset = static_cast<size_t>(data - region->data());
  const auto whole = static_cast<size_t>(region->size());
  return offset <= whole && size <= whole - offset ? region : nullptr;
}

void SharedMemory::EndSession() {
  std::map<const std::byte*, std::shared_ptr<SharedRegion>> users;
  {
    std::lock_guard lock(mutex_);
    users.swap(users_);
  }
  for (const auto& [data, region] : users) region->KeepBytes();
  session_.End();
}

}  // namespace stride::internal
