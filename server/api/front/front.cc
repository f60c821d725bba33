#include "server/api/front/front.h"

#include <sys/socket.h>

#include <algorithm>
#include <set>
#include <utility>

#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "absl/strings/str_cat.h"
#include "server/api/array_service.h"
#include "server/api/compute_service.h"
#include "server/api/compute_services.h"
#include "server/api/device_service.h"
#include "server/api/function_service.h"
#include "server/api/grpc_time.h"
#include "server/api/header_guard.h"
#include "server/api/health_service.h"
#include "server/api/job_service.h"
#include "server/api/kernel_service.h"
#include "server/api/local/local_connections.h"
#include "server/api/local/local_listener.h"
#include "server/api/local/local_service.h"
#include "server/api/local/region_service.h"
#include "server/api/log.h"
#include "server/api/program_service.h"
#include "server/api/reflection_service.h"
#include "server/api/run_server.h"
#include "server/api/session_service.h"
#include "server/api/tenant_service.h"
#include "server/base/environment.h"
#include "server/engine/engine.h"

namespace stride::api {
namespace {

// 4 MiB of payload and its framing.
constexpr int kMaxReceiveBytes = (4 << 20) + (64 << 10);
constexpr int kMaxStreamsPerConnection = 256;
constexpr int kLeastResetBurst = 100;
// A silent connection is closed after this time.
constexpr int kHandshakeTimeoutMs = 10000;
constexpr int kKeepaliveTimeMs = 60000;
constexpr int kKeepaliveTimeoutMs = 20000;
// Our clients send no pings; other clients may send them this often. Each earlier ping is a strike,
// and a connection with more strikes than this ends with GOAWAY (too_many_pings).
constexpr int kMinPingIntervalMs = 5000;
constexpr int kMaxPingStrikes = 2;
// Limit of a call's metadata: names, a deadline, a trace. Larger metadata is RESOURCE_EXHAUSTED
// before it is read.
constexpr int kMaxMetadataBytes = 16 << 10;
// Uploads are a fifth faster than with the default (measured with
// GRPC_EXPERIMENTS=-tcp_read_chunks, which main sets).
constexpr int kReadChunkBytes = 1 << 20;

std::vector<std::string> ServiceNames() {
  return {v1::ArrayService::service_full_name(),  v1::ComputeService::service_full_name(),
          v1::DeviceService::service_full_name(), v1::FunctionService::service_full_name(),
          v1::JobService::service_full_name(),    v1::KernelService::service_full_name(),
          v1::LocalService::service_full_name(),  v1::ProgramService::service_full_name(),
          v1::RegionService::service_full_name(), v1::SessionService::service_full_name(),
          v1::TenantService::service_full_name(), "grpc.health.v1.Health",
          "grpc.reflection.v1.ServerReflection"};
}

std::unique_ptr<Authenticator> AuthenticatorOf(const FrontOptions& options) {
  auto trusting = MakeTrustingAuthenticator(options.trust_tenant_header);
  if (options.identity == nullptr) return trusting;
  return MakeIdentityAuthenticator(options.identity,
                                   options.trust_local ? std::move(trusting) : nullptr);
}

ComputeServices ComputeServicesOf(engine::Engine& engine) {
  return {.sessions = &engine.sessions(),
          .arrays = &engine.arrays(),
          .operations = &engine.operations(),
          .accounts = &engine.accounts()};
}

class FrontImpl final : public Front {
 public:
  FrontImpl(const FrontOptions& options, engine::Engine* engine, metrics::Sampler* sampler)
      : authenticator_(AuthenticatorOf(options)),
        call_gate_(std::max(1, options.max_threads / 2), options.max_threads),
        environment_{authenticator_.get(), &counters_, options.audit, &call_gate_, &bytes_},
        gate_(options.max_bulk_streams),
        transfer_(&engine->arrays(), &engine->accounts(), &gate_),
        arrays_(&environment_, &engine->arrays(), &transfer_),
        compute_(&environment_, ComputeServicesOf(*engine)),
        runs_(&environment_, &engine->operations(), &engine->accounts(), &compute_,
              options.max_threads),
        devices_(&environment_, &engine->devices(), sampler, options.max_descriptors,
                 static_cast<int64_t>(options.listener.max_connections)),
        functions_(&environment_, &engine->functions()),
        jobs_(&environment_, &engine->jobs(), &engine->accounts()),
        kernels_(&environment_, &engine->modules()),
        local_connections_(&environment_, ComputeServicesOf(*engine), &engine->regions(),
                           &transfer_, std::max(1, options.max_threads / 8),
                           std::max(1, options.max_threads / 4)),
        local_(&environment_, &local_connections_),
        programs_(&environment_, &engine->programs()),
        regions_(&environment_, &engine->regions(), &local_connections_.pins()),
        sessions_(&environment_, &engine->sessions()),
        tenants_(&environment_, &engine->tenants()),
        health_(&environment_, &engine->devices()),
        reflection_(&environment_, ServiceNames()) {}

  ~FrontImpl() override { Stop(Now()); }

  absl::Status Start(const FrontOptions& options, std::vector<ListeningSocket> sockets);
  void BeginDrain() override { health_.BeginDrain(); }
  void Stop(SteadyTime deadline) override;
  std::vector<Address> addresses() const override { return addresses_; }
  UniqueFd Connect() override;
  const RpcCounters& counters() const override { return counters_; }
  const Listener::Stats& connections() const override { return listener_->stats(); }

 private:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  void ListenLocally(const std::vector<ListeningSocket>& sockets);
  void Configure(const FrontOptions& options, grpc::ServerBuilder* builder);
  static void Deliver(Acceptor& acceptor, UniqueFd connection, int listening_fd);
  // Without encryption.
  void DeliverPlain(UniqueFd connection, int listening_fd, const std::string& peer);

  std::unique_ptr<Authenticator> authenticator_;
  RpcCounters counters_;
  CallGate call_gate_;
  ByteBudget bytes_;
  CallEnvironment environment_;
  transfer::BulkGate gate_;
  ArrayTransfer transfer_;
  ArrayServiceAdapter arrays_;
  ComputeServiceAdapter compute_;
  RunServer runs_;
  DeviceServiceAdapter devices_;
  FunctionServiceAdapter functions_;
  JobServiceAdapter jobs_;
  KernelServiceAdapter kernels_;
  LocalConnections local_connections_;
  LocalServiceAdapter local_;
  ProgramServiceAdapter programs_;
  RegionServiceAdapter regions_;
  SessionServiceAdapter sessions_;
  TenantServiceAdapter tenants_;
  HealthService health_;
  ReflectionService reflection_;
  std::unique_ptr<LocalListener> local_listener_;  // null: no local connections
  std::shared_ptr<grpc::ServerCredentials> tls_;   // null: no TLS
  std::unique_ptr<Acceptor> plain_acceptor_;
  std::unique_ptr<Acceptor> tls_acceptor_;  // null: no TLS
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Listener> listener_;
  std::vector<Address> addresses_;
};

void FrontImpl::Configure(const FrontOptions& options, grpc::ServerBuilder* builder) {
  grpc::ResourceQuota quota("stride");
  quota.SetMaxThreads(options.max_threads);
  builder->SetResourceQuota(quota);
  builder->SetMaxReceiveMessageSize(kMaxReceiveBytes);
  // gRPC 1.51 decompresses a message before it checks its size, so half a megabyte could become
  // half a gigabyte in memory. Arrays hardly shrink by compression.
  for (grpc_compression_algorithm algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder->SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kMinPingIntervalMs);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, kMaxPingStrikes);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  if (options.stream_window_bytes > 0) {
    // Without the probe the window stays at this value.
    builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder->AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, options.stream_window_bytes);
  }
  builder->AddChannelArgument(GRPC_ARG_TCP_READ_CHUNK_SIZE, kReadChunkBytes);
  for (grpc::Service* service : std::initializer_list<grpc::Service*>{
           &arrays_, &compute_, &devices_, &functions_, &jobs_, &kernels_, &local_, &programs_,
           &regions_, &sessions_, &tenants_, &health_, &reflection_}) {
    builder->RegisterService(service);
  }
  runs_.AddTo(builder);
  constexpr auto kFromFd = grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD;
  plain_acceptor_ = builder->experimental().AddExternalConnectionAcceptor(
      kFromFd, grpc::InsecureServerCredentials());
  if (tls_ != nullptr)
    tls_acceptor_ = builder->experimental().AddExternalConnectionAcceptor(kFromFd, tls_);
}

absl::Status FrontImpl::Start(const FrontOptions& options, std::vector<ListeningSocket> sockets) {
  if (absl::Status status = HeaderGuard::Check(); !status.ok()) return status;
  // Each call takes a thread, however short it is: as for calls in progress, half of the threads
  // stay for other clients.
  HeaderGuard::SetResetBurst(std::max(kLeastResetBurst, options.max_threads / 2));
  HeaderGuard::SetMessageTime(options.message_time);
  if (options.tls.enabled()) {
    auto tls = MakeTlsCredentials(options.tls, LogWarning);
    if (!tls.ok()) return tls.status();
    tls_ = *std::move(tls);
  }
  ListenLocally(sockets);
  grpc::ServerBuilder builder;
  Configure(options, &builder);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::InternalError("gRPC does not start");
  runs_.Start();
  std::set<int> encrypted;
  for (const ListeningSocket& socket : sockets) {
    addresses_.push_back(socket.address);
    if (tls_ != nullptr && socket.address.kind == Address::Kind::kTcp)
      encrypted.insert(socket.fd.get());
  }
  auto deliver = [this, encrypted](UniqueFd connection, int listening_fd, const std::string& peer) {
    if (encrypted.count(listening_fd) > 0) {
      HeaderGuard::WatchEncrypted(connection.get(), peer);
      Deliver(*tls_acceptor_, std::move(connection), listening_fd);
    } else {
      DeliverPlain(std::move(connection), listening_fd, peer);
    }
  };
  auto listener = Listener::Start(std::move(sockets), options.listener, deliver);
  if (!listener.ok()) return listener.status();
  listener_ = *std::move(listener);
  return absl::OkStatus();
}

// A daemon without local connections still serves.
void FrontImpl::ListenLocally(const std::vector<ListeningSocket>& sockets) {
  auto local = std::find_if(sockets.begin(), sockets.end(), [](const ListeningSocket& socket) {
    return socket.address.kind == Address::Kind::kUnix && !socket.address.path.empty();
  });
  if (local == sockets.end()) return;
  auto listener = LocalListener::Start(
      local->address.path, [this](std::string_view ticket, UniqueFd connection) {
        return local_connections_.Admit(ticket, std::move(connection));
      });
  if (!listener.ok()) {
    LogWarning(absl::StrCat("clients have no local connections and share no memory: ",
                            listener.status().message()));
    return;
  }
  local_listener_ = *std::move(listener);
  local_.set_socket_path(local_listener_->path());
}

void FrontImpl::Deliver(Acceptor& acceptor, UniqueFd connection, int listening_fd) {
  Acceptor::NewConnectionParameters parameters;
  parameters.listener_fd = listening_fd;
  parameters.fd = connection.Release();
  acceptor.HandleNewConnection(&parameters);
}

void FrontImpl::DeliverPlain(UniqueFd connection, int listening_fd, const std::string& peer) {
  HeaderGuard::Watch(connection.get(), peer);
  Deliver(*plain_acceptor_, std::move(connection), listening_fd);
}

UniqueFd FrontImpl::Connect() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return {};
  DeliverPlain(UniqueFd(ends[0]), -1, "the daemon itself");
  return UniqueFd(ends[1]);
}

void FrontImpl::Stop(SteadyTime deadline) {
  health_.BeginDrain();
  if (listener_ != nullptr) listener_->Stop();
  environment_.stopping = true;
  local_listener_.reset();
  if (server_ != nullptr) server_->Shutdown(ToGrpcTime(deadline));
  local_connections_.Stop(deadline);
  runs_.Stop();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Front>> Front::Start(const FrontOptions& options,
                                                    engine::Engine* engine,
                                                    metrics::Sampler* sampler,
                                                    std::vector<ListeningSocket> sockets) {
  auto front = std::make_unique<FrontImpl>(options, engine, sampler);
  if (absl::Status status = front->Start(options, std::move(sockets)); !status.ok()) return status;
  return front;
}

}  // namespace stride::api
