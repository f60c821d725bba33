// A region that a user holds as a SharedBuffer.
#pragma once

#include <memory>
#include <utility>

#include "client/cpp/src/core.h"

namespace stride::internal {

// Releases the region at the daemon on destruction, unless the client was destroyed before.
class UserRegion {
 public:
  UserRegion(std::weak_ptr<Core> core, std::shared_ptr<SharedRegion> region)
      : core_(std::move(core)), region_(std::move(region)) {}
  ~UserRegion() {
    if (auto core = core_.lock()) core->shared.Release(region_);
  }
  UserRegion(const UserRegion&) = delete;

  const SharedRegion& region() const { return *region_; }

 private:
  const std::weak_ptr<Core> core_;
  const std::shared_ptr<SharedRegion> region_;
};

}  // namespace stride::internal
