#include "client/cpp/src/channels.h"

#include <grpc/grpc.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "stride/client.h"

namespace stride {

std::string DefaultAddress() {
  if (const char* address = std::getenv("STRIDE_ADDRESS"); address && *address) return address;
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime && *runtime) {
    const std::string socket = std::string(runtime) + "/stride.sock";
    struct stat status;
    if (stat(socket.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) return "unix:" + socket;
  }
  return "unix:/run/stride/stride.sock";
}

}  // namespace stride

namespace stride::internal {
namespace {

// Retries calls that change nothing or have a request id, and only when the daemon reports that it
// did not accept them.
constexpr char kServiceConfig[] = R"({
  "methodConfig": [{
    "name": [
      {"service": "stride.v1.DeviceService"},
      {"service": "stride.v1.ArrayService", "method": "GetArray"},
      {"service": "stride.v1.ArrayService", "method": "ListArrays"},
      {"service": "stride.v1.JobService", "method": "CreateJob"},
      {"service": "stride.v1.JobService", "method": "GetJob"},
      {"service": "stride.v1.JobService", "method": "ListJobs"},
      {"service": "stride.v1.KernelService", "method": "GetModule"},
      {"service": "stride.v1.KernelService", "method": "ListModules"},
      {"service": "stride.v1.SessionService", "method": "GetSession"},
      {"service": "stride.v1.SessionService", "method": "RenewSession"}
    ],
    "retryPolicy": {
      "maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "2s", "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"]
    }
  }],
  "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}
})";

// The contract limits messages to 4 MiB of data; this leaves room for the rest.
constexpr int kMaxReceiveBytes = 16 << 20;

// gRPC shuts down with its last channel, and joins a thread that may sleep in a poll of 10 s. One
// reference that is never released keeps this from blocking a Client's destructor.
void KeepGrpc() {
  static const bool kept = [] {
    grpc_init();
    return true;
  }();
  (void)kept;
}

std::shared_ptr<grpc::Channel> Open(const std::string& target, const Credentials& credentials) {
  KeepGrpc();
  grpc::ChannelArguments arguments;
  // Channels to one address would otherwise share one connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  arguments.SetServiceConfigJSON(kServiceConfig);
  // A daemon that restarts is back in less than a second; gRPC's default first backoff is longer,
  // and then doubles.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  // Despite its name this is the limit of one attempt, up to the end of the handshake. A distant or
  // busy daemon needs more than a backoff, and one that is being replaced answers late, from its
  // socket's backlog. A refused attempt still ends at once.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  // The daemon's address is explicit; a proxy from the environment cannot reach its socket.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (!credentials.server_name.empty()) arguments.SetSslTargetNameOverride(credentials.server_name);
  return grpc::CreateCustomChannel(target, credentials.channel, arguments);
}

int NumBulk(int wanted) {
  if (wanted > 0) return wanted;
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 2, 2, 8);
}

}  // namespace

Channels::Channels(std::string address, std::string target, Credentials credentials, int num_bulk)
    : address_(std::move(address)),
      target_(std::move(target)),
      credentials_(std::move(credentials)),
      control_(Open(target_, credentials_)),
      bulk_(NumBulk(num_bulk)) {}

std::shared_ptr<grpc::Channel> Channels::Bulk(int index) {
  std::lock_guard lock(mutex_);
  auto& channel = bulk_[index % bulk_.size()];
  if (!channel) channel = Open(target_, credentials_);
  return channel;
}

bool Channels::ConnectBulk(gpr_timespec deadline) {
  for (int i = 0; i < num_bulk(); ++i) {
    if (!Bulk(i)->WaitForConnected(deadline)) return false;
  }
  return true;
}

void Channels::DropBulk(int index, const std::shared_ptr<grpc::Channel>& channel) {
  std::lock_guard lock(mutex_);
  auto& slot = bulk_[index % bulk_.size()];
  if (slot == channel) slot.reset();
}

}  // namespace stride::internal
