#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stride::engine {

// Ids of the memory spaces by index, as records name them: the devices in the broker's order, then
// host memory, then disk. Constant, so any thread.
class SpaceNames {
 public:
  SpaceNames(std::vector<std::string> ids, const std::string& memory, const std::string& disk)
      : ids_(std::move(ids)) {
    ids_.insert(ids_.end(), {memory, disk});
  }

  const std::string& IdOf(int space) const { return ids_[space]; }
  // The index of the space, or of the device, of this id; -1: there is none.
  int Find(std::string_view id) const { return FindAmong(ids_.size(), id); }
  int FindDevice(std::string_view id) const { return FindAmong(ids_.size() - 2, id); }

 private:
  int FindAmong(size_t count, std::string_view id) const {
    for (size_t i = 0; i < count; ++i) {
      if (ids_[i] == id) return static_cast<int>(i);
    }
    return -1;
  }
  std::vector<std::string> ids_;
};

}  // namespace stride::engine
