#include "stride/client.h"

#include "client/cpp/src/address.h"
#include "client/cpp/src/core.h"
#include "client/cpp/src/credentials.h"
#include "client/cpp/src/grpc_time.h"
#include "client/cpp/src/reach.h"
#include "client/cpp/src/status.h"

namespace stride {

Result<Client> Client::Connect(const ConnectOptions& options) {
  ConnectOptions complete = options;
  if (complete.address.empty()) complete.address = DefaultAddress();
  auto target = internal::TargetOf(complete.address);
  if (!target) return target.error();
  auto credentials = internal::MakeCredentials(complete, *target);
  if (!credentials) return credentials.error();
  if (auto refused = internal::Refused(*target)) return *refused;
  auto core = std::make_shared<internal::Core>(complete, *target, *credentials);
  if (!core->channels.control()->WaitForConnected(
          internal::GrpcTimeAfter(complete.connect_timeout))) {
    return internal::WhyUnreachable(complete, *target, core->channels.control());
  }
  return Client(std::move(core));
}

Client::Client(std::shared_ptr<internal::Core> core) : core_(std::move(core)) {}
Client::Client(Client&&) noexcept = default;

Client& Client::operator=(Client&& other) noexcept {
  if (core_) core_->Close();
  core_ = std::move(other.core_);
  return *this;
}

Client::~Client() {
  if (core_) core_->Close();
}

const std::string& Client::address() const { return core_->channels.address(); }

}  // namespace stride
