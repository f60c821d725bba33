#include "server/main/probe.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/security/credentials.h>

#include <utility>

#include "grpc/health/v1/health.grpc.pb.h"
#include "server/api/grpc_time.h"

namespace stride {

struct Probe::Channel {
  std::unique_ptr<grpc::health::v1::Health::Stub> stub;
};

Probe::Probe(const api::Address& address) : channel_(std::make_unique<Channel>()) {
  channel_->stub = grpc::health::v1::Health::NewStub(
      grpc::CreateChannel(address.ToTarget(), grpc::InsecureChannelCredentials()));
}

Probe::Probe(std::function<UniqueFd()> connect)
    : channel_(std::make_unique<Channel>()), connect_(std::move(connect)) {}

Probe::~Probe() = default;

bool Probe::Answers(absl::Duration timeout) {
  if (channel_->stub == nullptr) {
    UniqueFd fd = connect_();
    if (!fd.valid()) return false;
    channel_->stub = grpc::health::v1::Health::NewStub(
        grpc::CreateInsecureChannelFromFd("daemon", fd.Release()));
  }
  grpc::ClientContext context;
  context.set_deadline(api::ToGrpcTime(MachineTime() + timeout));
  grpc::health::v1::HealthCheckRequest request;
  grpc::health::v1::HealthCheckResponse response;
  bool answers = channel_->stub->Check(&context, request, &response).ok();
  // A channel over a descriptor cannot connect again.
  if (!answers && connect_) channel_->stub.reset();
  return answers;
}

}  // namespace stride
