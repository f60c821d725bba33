#include "server/main/probe.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include "absl/time/clock.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace stride {

struct Probe::Channel {
  std::unique_ptr<grpc::health::v1::Health::Stub> stub;
};

Probe::Probe(const api::Address& address) : channel_(std::make_unique<Channel>()) {
  channel_->stub = grpc::health::v1::Health::NewStub(
      grpc::CreateChannel(address.ToTarget(), grpc::InsecureChannelCredentials()));
}

Probe::~Probe() = default;

bool Probe::Answers(absl::Duration timeout) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  grpc::health::v1::HealthCheckRequest request;
  grpc::health::v1::HealthCheckResponse response;
  return channel_->stub->Check(&context, request, &response).ok();
}

}  // namespace stride
