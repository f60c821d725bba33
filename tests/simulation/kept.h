#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "server/fd_store/fd_store.h"

namespace stride::simulation {

// A FdStore in this process. Its state at one time can be copied with its content: this is the
// state that a killed daemon leaves, whatever the original does later.
class Kept : public fd_store::FdStore {
 public:
  using Files = std::map<std::string, UniqueFd>;

  // `point` is called wherever the daemon may die.
  explicit Kept(std::function<void(const char*)> point, Files files = {})
      : point_(std::move(point)), files_(std::move(files)) {}

  bool keeps() const override { return true; }
  absl::Status Store(const std::string& name, int fd) override;
  void Remove(const std::string& name) override;
  std::vector<NamedFd> TakeAll() override;

  Files Copy() const;
  const Files& files() const { return files_; }

 private:
  const std::function<void(const char*)> point_;
  Files files_;
};

}  // namespace stride::simulation
