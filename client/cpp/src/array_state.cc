#include "client/cpp/src/array_state.h"

#include "client/cpp/src/call.h"
#include "client/cpp/src/convert.h"
#include "client/cpp/src/core.h"
#include "client/cpp/src/status.h"
#include "stride/v1/array_service.grpc.pb.h"

namespace stride::internal {

ArrayState::ArrayState(std::weak_ptr<Core> core, uint64_t handle,
                       std::shared_ptr<PendingCommand> origin, int index, bool timeline, bool owns)
    : core_(std::move(core)),
      handle_(handle),
      origin_(std::move(origin)),
      index_(index),
      has_timeline_(timeline),
      owns_(owns) {}

ArrayState::ArrayState(std::weak_ptr<Core> core, uint64_t handle, ArraySpec spec)
    : core_(std::move(core)), handle_(handle), spec_(std::move(spec)) {}

ArrayState::ArrayState(std::weak_ptr<Core> core, std::string name)
    : core_(std::move(core)), given_name_(std::move(name)) {}

ArrayState::ArrayState(std::weak_ptr<Core> core, std::string name,
                       std::shared_ptr<PendingCommand> origin, int index, bool timeline)
    : core_(std::move(core)),
      given_name_(std::move(name)),
      origin_(std::move(origin)),
      index_(index),
      has_timeline_(timeline) {}

ArrayState::~ArrayState() {
  auto core = core_.lock();
  if (!core || handle_ == 0 || !owns_) return;
  int64_t bytes = 0;
  if (spec_) {
    bytes = SizeBytes(*spec_).value_or(0);
  } else if (origin_ && origin_->Succeeded()) {
    if (auto spec = Spec({})) bytes = SizeBytes(*spec).value_or(0);
  }
  core->stream.Release(handle_, bytes);
}

Result<std::shared_ptr<Core>> ArrayState::LockedCore() const {
  auto core = core_.lock();
  if (!core) return LocalError(Code::kCancelled, "The client of this array is closed");
  return core;
}

Result<std::string> ArrayState::Name() const {
  if (handle_ == 0) return given_name_;
  auto core = LockedCore();
  if (!core) return core.error();
  auto session = (*core)->session.Name();
  if (!session) return session.error();
  return *session + "/arrays/" + std::to_string(handle_);
}

Result<ArraySpec> ArrayState::Spec(const CallOptions& options) const {
  if (spec_) return *spec_;
  if (!origin_) {
    auto info = Describe(options);
    if (!info) return info.error();
    return info->spec;
  }
  auto core = LockedCore();
  if (!core) return core.error();
  auto answer = origin_->Wait(options, (*core)->default_timeout);
  if (!answer) return answer.error();
  if ((*answer)->results_size() <= index_) {
    return LocalError(Code::kInternal,
                      "The daemon's answer lacks result " + std::to_string(index_));
  }
  return FromProto((*answer)->results(index_).array()).spec;
}

Result<void> ArrayState::Wait(const CallOptions& options) const {
  auto core = LockedCore();
  if (!core) return core.error();
  if (origin_) {
    auto answer = origin_->Wait(options, (*core)->default_timeout);
    if (!answer) return answer.error();
    if (has_timeline_) return {};
    v1::Command command;
    command.mutable_synchronize();
    auto ended =
        (*core)->stream.Submit(std::move(command))->Wait(options, (*core)->default_timeout);
    // An error with a reason came from the daemon: some operation failed, perhaps another one, and
    // this array's own state has its error. Other errors belong to this wait.
    if (!ended && ended.error().reason.empty()) return ended.error();
  }
  auto info = Describe(options);
  if (!info) return info.error();
  if (info->error) return *info->error;
  return {};
}

Result<stride::Timeline> ArrayState::Timeline(const CallOptions& options) const {
  if (!has_timeline_)
    return LocalError(Code::kFailedPrecondition, "Not asked for: set ComputeOptions::timeline");
  auto core = LockedCore();
  if (!core) return core.error();
  auto answer = origin_->Wait(options, (*core)->default_timeout);
  if (!answer) return answer.error();
  return FromProto((*answer)->timeline());
}

Result<ArrayInfo> ArrayState::Describe(const CallOptions& options) const {
  auto core = LockedCore();
  if (!core) return core.error();
  if (origin_) {
    // This call uses another connection than the command that creates the name, so await the
    // command.
    auto answer = origin_->Wait(options, (*core)->default_timeout);
    if (!answer) return answer.error();
  }
  (*core)->AwaitWrites(options);
  auto name = Name();
  if (!name) return name.error();
  Call call(options, (*core)->default_timeout);
  v1::GetArrayRequest request;
  request.set_name(*name);
  v1::GetArrayResponse response;
  auto stub = v1::ArrayService::NewStub((*core)->channels.control());
  if (auto status = stub->GetArray(call.context(), request, &response); !status.ok())
    return ToError(status);
  return FromProto(response.array());
}

}  // namespace stride::internal
