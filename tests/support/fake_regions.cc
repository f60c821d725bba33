#include "tests/support/fake_regions.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/memory_file.h"

namespace stride::testing {

absl::StatusOr<engine::PinnedMemory> FakeRegions::Pin(std::string name, int64_t size) {
  auto file = CreateMemoryFile("fake", static_cast<size_t>(size));
  if (!file.ok()) return file.status();
  auto owner = std::make_shared<const UniqueFd>(*std::move(file));
  const int fd = owner->get();
  pinned_.insert(name);
  return engine::PinnedMemory{std::move(owner), fd, std::move(name)};
}

absl::StatusOr<engine::PinnedMemory> FakeRegions::Create(const TenantId&,
                                                         const v1::CreateRegionRequest& request,
                                                         v1::CreateRegionResponse* response) {
  absl::MutexLock lock(&mutex_);
  response->mutable_region()->set_name(absl::StrCat(request.parent(), "/regions/", ++num_created_));
  response->mutable_region()->set_size_bytes(request.size_bytes());
  return Pin(response->region().name(), request.size_bytes());
}

absl::Status FakeRegions::Delete(const TenantId&, const std::string& name) {
  absl::MutexLock lock(&mutex_);
  return pinned_.erase(name) > 0 ? absl::OkStatus() : absl::NotFoundError(name);
}

absl::StatusOr<engine::PinnedMemory> FakeRegions::Map(const TenantId&,
                                                      const v1::MapArrayRequest& request,
                                                      SteadyTime, v1::MapArrayResponse* response) {
  absl::MutexLock lock(&mutex_);
  response->set_device_kind("cpu");
  response->set_memory_bytes(4096);
  return Pin(absl::StrCat("exports/", request.name(), ++num_created_), 4096);
}

void FakeRegions::Release(const std::string& name, std::shared_ptr<const void>) {
  absl::MutexLock lock(&mutex_);
  pinned_.erase(name);
}

size_t FakeRegions::num_pinned() const {
  absl::MutexLock lock(&mutex_);
  return pinned_.size();
}

}  // namespace stride::testing
