#include "client/cli/bench/many_clients.h"

#include <grpcpp/alarm.h>
#include <grpcpp/generic/generic_stub.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include "client/cpp/src/address.h"
#include "client/cpp/src/call.h"
#include "client/cpp/src/channels.h"
#include "client/cpp/src/credentials.h"
#include "client/cpp/src/operation_impl.h"
#include "client/cpp/src/status.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/session_service.pb.h"

namespace stride::cli {
namespace {

using internal::Channels;
using internal::GrpcTimeAfter;
using internal::LocalError;
using internal::ToError;

using Clock = std::chrono::steady_clock;

constexpr char kRunMethod[] = "/stride.v1.ComputeService/Run";
constexpr char kGetSession[] = "/stride.v1.SessionService/GetSession";
constexpr char kCreateSession[] = "/stride.v1.SessionService/CreateSession";
constexpr char kDeleteSession[] = "/stride.v1.SessionService/DeleteSession";
// The pause after a refusal of the daemon.
constexpr auto kPause = std::chrono::milliseconds(10);
// The interval at which an idle thread checks whether it should end, and the limit for the last
// answers after the load's time.
constexpr auto kLook = std::chrono::milliseconds(200);
constexpr auto kPatience = std::chrono::seconds(30);
constexpr auto kFirstCalls = std::chrono::seconds(60);
// Connections that a listening socket's backlog holds while they are made.
constexpr int kConnectingAtOnce = 64;
constexpr auto kConnectTimeout = std::chrono::seconds(20);
// Descriptors of this process other than the clients' connections.
constexpr rlim_t kOtherDescriptors = 128;

grpc::ByteBuffer Bytes(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

template <typename Message>
bool Parse(const grpc::ByteBuffer& bytes, Message* message) {
  grpc::Slice slice;
  return bytes.DumpToSingleSlice(&slice).ok() &&
         message->ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
}

// Raises the soft limit of open files as far as needed.
Result<void> AllowDescriptors(int num_clients) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t needed = static_cast<rlim_t>(num_clients) + kOtherDescriptors;
  if (limit.rlim_cur >= needed) return {};
  if (limit.rlim_max < needed) {
    return LocalError(Code::kResourceExhausted,
                      std::to_string(num_clients) + " clients need " + std::to_string(needed) +
                          " open files, and this process may have " +
                          std::to_string(limit.rlim_max) + " (ulimit -Hn)");
  }
  limit.rlim_cur = needed;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return {};
  return LocalError(Code::kResourceExhausted, "The limit of open files cannot be raised");
}

// One connection, one session, one call at a time. While a load runs, only the thread of its
// completion queue accesses it.
struct OneClient {
  std::unique_ptr<Channels> channels;
  std::unique_ptr<grpc::GenericStub> stub;
  std::string session;
  grpc::ByteBuffer run_request, echo_request;

  std::optional<grpc::ClientContext> context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> call;
  grpc::ByteBuffer reply;
  grpc::Status status;
  grpc::Alarm alarm;
  bool pausing = false;

  int64_t calls = 0;
  Clock::time_point begin, first_begin, last_end;

  void Start(const char* method, const grpc::ByteBuffer& request, grpc::CompletionQueue* queue) {
    context.emplace();
    reply.Clear();
    begin = Clock::now();
    call = stub->PrepareUnaryCall(&*context, method, request, queue);
    call->StartCall();
    call->Finish(&reply, &status, this);
  }

  // Blocking, with a queue of its own.
  grpc::Status Call(const char* method, const grpc::ByteBuffer& request) {
    grpc::CompletionQueue queue;
    Start(method, request, &queue);
    void* tag;
    bool ok;
    queue.Next(&tag, &ok);
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
    return status;
  }
};

// The clients of one thread, and their results.
struct Share {
  std::vector<OneClient*> clients;
  grpc::CompletionQueue queue;
  std::vector<double> latencies;
  int64_t num_failed = 0;
  Error first_error;
  std::optional<Error> fatal;
  int in_flight = 0;
};

}  // namespace

class ManyClients::Impl {
 public:
  explicit Impl(const Options& options) : options_(options) {}

  ~Impl() {
    for (const auto& client : clients_) {
      if (client->session.empty()) continue;
      v1::DeleteSessionRequest request;
      request.set_name(client->session);
      client->Call(kDeleteSession, Bytes(request));
    }
  }

  Result<void> Open() {
    if (auto allowed = AllowDescriptors(options_.num_clients); !allowed) return allowed;
    auto target = internal::TargetOf(options_.connection.address);
    if (!target) return target.error();
    auto credentials = internal::MakeCredentials(options_.connection, *target);
    if (!credentials) return credentials.error();
    while (static_cast<int>(clients_.size()) < options_.num_clients) {
      if (options_.cancellation.cancelled()) return LocalError(Code::kCancelled, "Interrupted");
      const size_t first = clients_.size();
      const int count = std::min(kConnectingAtOnce, options_.num_clients - static_cast<int>(first));
      for (int i = 0; i < count; ++i) {
        auto client = std::make_unique<OneClient>();
        client->channels =
            std::make_unique<Channels>(options_.connection.address, *target, *credentials, 1);
        client->channels->control()->GetState(/*try_to_connect=*/true);
        client->stub = std::make_unique<grpc::GenericStub>(client->channels->control());
        clients_.push_back(std::move(client));
      }
      for (size_t i = first; i < clients_.size(); ++i) {
        if (auto opened = OpenSession(*clients_[i]); !opened) return Refused(i, opened.error());
      }
    }
    return {};
  }

  void SetOperation(const Operation& operation, int64_t result_bytes) {
    result_bytes_ = result_bytes;
    v1::RunRequest request;
    *request.mutable_operation() = operation.impl().message;
    for (v1::Output* output :
         internal::MutableOutputs(*request.mutable_operation(), operation.num_outputs()))
      output->set_inline_result(true);
    for (const auto& client : clients_) {
      request.set_session(client->session);
      client->run_request = Bytes(request);
    }
  }

  Result<LoadResult> Run(Load load, std::chrono::nanoseconds duration, int64_t num_calls) {
    load_ = load;
    // The first call may compile, start a worker and find cold caches, so it is not measured.
    auto first = Measure(kFirstCalls, 1);
    return first ? Measure(duration, num_calls) : first;
  }

 private:
  Result<LoadResult> Measure(std::chrono::nanoseconds duration, int64_t num_calls) {
    num_calls_ = num_calls;
    const size_t num_threads =
        std::clamp<size_t>(static_cast<size_t>(options_.num_threads), 1, clients_.size());
    std::vector<std::unique_ptr<Share>> shares;
    for (size_t i = 0; i < num_threads; ++i) shares.push_back(std::make_unique<Share>());
    for (size_t i = 0; i < clients_.size(); ++i) {
      clients_[i]->calls = 0;
      shares[i % num_threads]->clients.push_back(clients_[i].get());
    }
    end_ = Clock::now() + duration;
    std::vector<std::thread> threads;
    for (auto& share : shares) threads.emplace_back([this, &share] { Serve(*share); });
    for (std::thread& thread : threads) thread.join();
    return Collect(shares);
  }

  Result<void> OpenSession(OneClient& client) {
    const auto deadline = GrpcTimeAfter(kConnectTimeout);
    if (!client.channels->control()->WaitForConnected(deadline))
      return LocalError(Code::kUnavailable, "no connection comes about");
    const grpc::Status status = client.Call(kCreateSession, Bytes(v1::CreateSessionRequest()));
    if (!status.ok()) return ToError(status);
    v1::CreateSessionResponse response;
    if (!Parse(client.reply, &response))
      return LocalError(Code::kInternal, "a session's answer cannot be read");
    client.session = response.session().name();
    v1::GetSessionRequest request;
    request.set_name(client.session);
    client.echo_request = Bytes(request);
    return {};
  }

  Error Refused(size_t index, Error error) const {
    error.message = "The daemon took " + std::to_string(index) + " of " +
                    std::to_string(options_.num_clients) + " clients (" + error.message + ")";
    if (error.code == Code::kUnavailable) {
      error.message +=
          ": it allows --max-connections in all and --max-connections-per-peer of one user, and "
          "needs a file descriptor for each";
    } else if (error.code == Code::kResourceExhausted) {
      error.message += ": it allows a tenant --max-sessions";
    }
    return error;
  }

  bool MayGoOn(const OneClient& client) const {
    if (options_.cancellation.cancelled() || Clock::now() >= end_) return false;
    return num_calls_ == 0 || client.calls < num_calls_;
  }

  void Begin(OneClient& client, Share& share) {
    const bool run = load_ == Load::kRun;
    client.Start(run ? kRunMethod : kGetSession, run ? client.run_request : client.echo_request,
                 &share.queue);
  }

  // Runs a thread's part of a load, from its clients' first call to their last.
  void Serve(Share& share) {
    for (OneClient* client : share.clients) Begin(*client, share);
    share.in_flight = static_cast<int>(share.clients.size());
    void* tag;
    bool ok;
    while (share.in_flight > 0) {
      const auto look = GrpcTimeAfter(kLook);
      if (share.queue.AsyncNext(&tag, &ok, look) == grpc::CompletionQueue::TIMEOUT) {
        if (options_.cancellation.cancelled() || Clock::now() > end_ + kPatience) GiveUp(share);
        continue;
      }
      OneClient& client = *static_cast<OneClient*>(tag);
      if (client.pausing) {
        client.pausing = false;
        GoOn(client, share);
      } else {
        Ended(client, share);
      }
    }
    share.queue.Shutdown();
    while (share.queue.Next(&tag, &ok)) {
    }
  }

  // Cancels the calls in flight.
  static void GiveUp(Share& share) {
    for (OneClient* client : share.clients) {
      if (client->context) client->context->TryCancel();
    }
  }

  void GoOn(OneClient& client, Share& share) {
    if (!share.fatal && MayGoOn(client))
      Begin(client, share);
    else
      --share.in_flight;
  }

  void Ended(OneClient& client, Share& share) {
    if (!client.status.ok()) {
      if (share.num_failed++ == 0) share.first_error = ToError(client.status);
      client.pausing = true;
      client.alarm.Set(&share.queue, GrpcTimeAfter(kPause), &client);
      return;
    }
    client.last_end = Clock::now();
    if (client.calls++ == 0) {
      client.first_begin = client.begin;
      if (load_ == Load::kRun && !IsRight(client.reply))
        share.fatal = LocalError(Code::kInternal, "A result is not what was asked for");
    }
    share.latencies.push_back(
        std::chrono::duration<double>(client.last_end - client.begin).count());
    GoOn(client, share);
  }

  bool IsRight(const grpc::ByteBuffer& reply) const {
    v1::RunResponse response;
    return Parse(reply, &response) && response.results_size() == 1 &&
           static_cast<int64_t>(response.results(0).inline_array().data().size()) == result_bytes_;
  }

  Result<LoadResult> Collect(const std::vector<std::unique_ptr<Share>>& shares) const {
    LoadResult result;
    Clock::time_point begin = Clock::time_point::max(), end = Clock::time_point::min();
    for (const auto& share : shares) {
      if (share->fatal) return *share->fatal;
      result.latencies.insert(result.latencies.end(), share->latencies.begin(),
                              share->latencies.end());
      if (result.num_failed == 0) result.first_error = share->first_error;
      result.num_failed += share->num_failed;
    }
    for (const auto& client : clients_) {
      const int64_t calls = client->calls;
      double seconds = 0;
      if (calls > 0) {
        seconds = std::chrono::duration<double>(client->last_end - client->first_begin).count();
        begin = std::min(begin, client->first_begin);
        end = std::max(end, client->last_end);
      }
      result.clients.push_back({calls, seconds});
    }
    if (options_.cancellation.cancelled()) return LocalError(Code::kCancelled, "Interrupted");
    if (result.latencies.empty()) {
      return result.num_failed > 0 ? result.first_error
                                   : LocalError(Code::kDeadlineExceeded, "No call ended");
    }
    result.seconds = std::chrono::duration<double>(end - begin).count();
    return result;
  }

  const Options options_;
  std::vector<std::unique_ptr<OneClient>> clients_;
  int64_t result_bytes_ = 0;
  // State of the load that runs.
  Load load_ = Load::kRun;
  int64_t num_calls_ = 0;
  Clock::time_point end_;
};

ManyClients::ManyClients(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ManyClients::~ManyClients() = default;

Result<std::unique_ptr<ManyClients>> ManyClients::Open(const Options& options) {
  auto impl = std::make_unique<Impl>(options);
  if (auto opened = impl->Open(); !opened) return opened.error();
  return std::unique_ptr<ManyClients>(new ManyClients(std::move(impl)));
}

void ManyClients::SetOperation(const Operation& operation, int64_t result_bytes) {
  impl_->SetOperation(operation, result_bytes);
}

Result<LoadResult> ManyClients::Run(Load load, std::chrono::nanoseconds duration,
                                    int64_t num_calls) {
  return impl_->Run(load, duration, num_calls);
}

}  // namespace stride::cli
