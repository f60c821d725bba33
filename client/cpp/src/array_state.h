// State shared by an Array and the Operands made from it: the handle, and the command that creates
// it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "stride/array.h"

namespace stride::internal {

class Core;
class PendingCommand;

// Destruction by the last owner releases the handle at the daemon. Immutable except Spec's cache,
// so any thread may use it.
class ArrayState {
 public:
  // A handle for result number `index` of `origin`. With `owns` false another ArrayState releases
  // it.
  ArrayState(std::weak_ptr<Core> core, uint64_t handle, std::shared_ptr<PendingCommand> origin,
             int index, bool timeline, bool owns);
  // A handle filled by an upload: `spec` is known.
  ArrayState(std::weak_ptr<Core> core, uint64_t handle, ArraySpec spec);
  // A named array; destruction deletes nothing.
  ArrayState(std::weak_ptr<Core> core, std::string name);
  // A named array that `origin` creates.
  ArrayState(std::weak_ptr<Core> core, std::string name, std::shared_ptr<PendingCommand> origin,
             int index, bool timeline);
  ~ArrayState();
  ArrayState(const ArrayState&) = delete;
  ArrayState& operator=(const ArrayState&) = delete;

  uint64_t handle() const { return handle_; }  // 0 for named ones
  const std::string& given_name() const { return given_name_; }
  Result<std::string> Name() const;
  Result<ArraySpec> Spec(const CallOptions& options) const;
  Result<void> Wait(const CallOptions& options) const;
  Result<stride::Timeline> Timeline(const CallOptions& options) const;
  Result<ArrayInfo> Describe(const CallOptions& options) const;
  Result<std::shared_ptr<Core>> core() const { return LockedCore(); }

 private:
  Result<std::shared_ptr<Core>> LockedCore() const;

  const std::weak_ptr<Core> core_;
  const uint64_t handle_ = 0;
  const std::string given_name_;
  const std::shared_ptr<PendingCommand> origin_;
  const int index_ = 0;
  const bool has_timeline_ = false;
  const bool owns_ = true;
  const std::optional<ArraySpec> spec_;
};

}  // namespace stride::internal
