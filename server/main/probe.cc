#include "server/main/probe.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/security/credentials.h>

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "server/api/grpc_time.h"
#include "server/base/steady_time.h"

namespace stride {

struct Probe::Channel {
  // Null: the probe was cancelled.
  std::shared_ptr<grpc::ClientContext> NewCall() {
    absl::MutexLock lock(&mutex);
    call = cancelled ? nullptr : std::make_shared<grpc::ClientContext>();
    return call;
  }

  std::unique_ptr<grpc::health::v1::Health::Stub> stub;
  absl::Mutex mutex;
  std::shared_ptr<grpc::ClientContext> call ABSL_GUARDED_BY(mutex);
  bool cancelled ABSL_GUARDED_BY(mutex) = false;
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
  auto context = channel_->NewCall();
  if (context == nullptr) return false;
  context->set_deadline(api::ToGrpcTime(MachineTime() + timeout));
  grpc::health::v1::HealthCheckRequest request;
  grpc::health::v1::HealthCheckResponse response;
  bool answers = channel_->stub->Check(context.get(), request, &response).ok();
  // A channel over a descriptor cannot reconnect.
  if (!answers && connect_) channel_->stub.reset();
  return answers;
}

void Probe::Cancel() {
  absl::MutexLock lock(&channel_->mutex);
  channel_->cancelled = true;
  if (channel_->call != nullptr) channel_->call->TryCancel();
}

}  // namespace stride
