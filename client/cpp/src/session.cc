#include "client/cpp/src/session.h"

#include "client/cpp/src/call.h"
#include "client/cpp/src/status.h"
#include "stride/v1/session_service.grpc.pb.h"

namespace stride::internal {
namespace {

// A daemon that takes longer to open a session is unhealthy.
constexpr auto kCallTimeout = std::chrono::seconds(10);
constexpr auto kEndTimeout = std::chrono::seconds(2);

}  // namespace

Session::~Session() { End(); }

Result<std::string> Session::Name() {
  std::lock_guard lock(mutex_);
  if (ended_) return LocalError(Code::kCancelled, "The client is closed");
  if (!name_.empty()) return name_;
  Call call({.timeout = kCallTimeout}, {});
  v1::CreateSessionRequest request;
  request.mutable_ttl()->set_seconds(ttl_.count());
  v1::CreateSessionResponse response;
  auto stub = v1::SessionService::NewStub(channels_.control());
  const grpc::Status status = stub->CreateSession(call.context(), request, &response);
  if (!status.ok()) return ToError(status);
  name_ = response.session().name();
  if (!renewer_.joinable()) renewer_ = std::thread([this] { RenewUntilEnded(); });
  return name_;
}

void Session::Forget(const std::string& name) {
  std::lock_guard lock(mutex_);
  if (name_ == name) name_.clear();
}

void Session::RenewUntilEnded() {
  auto stub = v1::SessionService::NewStub(channels_.control());
  std::unique_lock lock(mutex_);
  // Three attempts within one lifetime.
  while (!ended_changed_.wait_for(lock, ttl_ / 3.0, [this] { return ended_; })) {
    if (name_.empty()) continue;
    v1::RenewSessionRequest request;
    request.set_name(name_);
    lock.unlock();
    Call call({.timeout = kCallTimeout}, {});
    v1::RenewSessionResponse response;
    const grpc::Status status = stub->RenewSession(call.context(), request, &response);
    if (status.error_code() == grpc::StatusCode::NOT_FOUND) Forget(request.name());
    lock.lock();
  }
}

void Session::End() {
  std::string name;
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
    name.swap(name_);
  }
  ended_changed_.notify_all();
  if (renewer_.joinable()) renewer_.join();
  if (name.empty()) return;
  Call call({.timeout = kEndTimeout}, {});
  v1::DeleteSessionRequest request;
  request.set_name(name);
  v1::DeleteSessionResponse response;
  // If this fails, the session expires by its ttl.
  (void)v1::SessionService::NewStub(channels_.control())
      ->DeleteSession(call.context(), request, &response);
}

}  // namespace stride::internal
