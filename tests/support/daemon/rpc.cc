#include "tests/support/daemon/rpc.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <sstream>
#include <stdexcept>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace stride::testing {
namespace {

grpc::ByteBuffer ToBuffer(const std::string& message) {
  grpc::Slice slice(message);
  return grpc::ByteBuffer(&slice, 1);
}

std::string FromBuffer(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string out;
  if (!buffer.Dump(&slices).ok()) throw std::runtime_error("a reply without bytes");
  for (const grpc::Slice& slice : slices)
    out.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return out;
}

void ReadDetails(const google::rpc::Status& status, Outcome* outcome) {
  for (const auto& detail : status.details()) {
    google::rpc::ErrorInfo info;
    google::rpc::BadRequest bad;
    google::rpc::ResourceInfo resource;
    if (detail.UnpackTo(&info)) {
      ++outcome->num_error_infos;
      outcome->reason = info.reason();
      outcome->domain = info.domain();
      outcome->metadata = {info.metadata().begin(), info.metadata().end()};
    } else if (detail.UnpackTo(&bad)) {
      for (const auto& violation : bad.field_violations())
        outcome->violations.push_back({violation.field(), violation.description()});
    } else if (detail.UnpackTo(&resource)) {
      outcome->resource = resource.resource_name();
    }
    outcome->has_retry_delay |= detail.Is<google::rpc::RetryInfo>();
  }
}

}  // namespace

std::string Outcome::ToString() const {
  std::ostringstream out;
  out << "code " << code << ", " << reason << ": " << message;
  for (const auto& violation : violations)
    out << "\n  " << violation.field << ": " << violation.description;
  for (const auto& [key, value] : metadata) out << "\n  " << key << " = " << value;
  return out.str();
}

Outcome ReadStatus(const std::string& serialized) {
  google::rpc::Status status;
  if (!status.ParseFromString(serialized)) throw std::runtime_error("no google.rpc.Status");
  Outcome outcome{.code = status.code(), .message = status.message()};
  ReadDetails(status, &outcome);
  return outcome;
}

Rpc::Rpc(const std::string& address, std::string tenant) : tenant_(std::move(tenant)) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a separate connection
  channel_ = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

Rpc::~Rpc() = default;

std::string Rpc::OnlyReply(const Outcome& outcome) {
  if (!outcome.ok() || outcome.replies.size() != 1) throw std::runtime_error(outcome.ToString());
  return outcome.replies[0];
}

Outcome Rpc::Call(const std::string& method, const std::vector<std::string>& messages,
                  std::chrono::milliseconds timeout) const {
  const bool full = method.find("grpc.") == 0;
  grpc::GenericStub stub{std::shared_ptr<grpc::ChannelInterface>(channel_)};
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + timeout);
  if (!tenant_.empty()) context.AddMetadata("stride-tenant", tenant_);
  grpc::CompletionQueue queue;
  auto stream = stub.PrepareCall(&context, (full ? "/" : "/stride.v1.") + method, &queue);
  // One operation is in flight at a time, so the next event is its end.
  auto next = [&] {
    void* tag;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  stream->StartCall(nullptr);
  bool going = next();
  for (const std::string& message : messages) {
    if (!going) break;
    stream->Write(ToBuffer(message), nullptr);
    going = next();
  }
  if (going) {
    stream->WritesDone(nullptr);
    next();
  }
  Outcome outcome;
  grpc::ByteBuffer reply;
  while (true) {
    stream->Read(&reply, nullptr);
    if (!next()) break;
    outcome.replies.push_back(FromBuffer(reply));
  }
  grpc::Status status;
  stream->Finish(&status, nullptr);
  next();
  queue.Shutdown();
  while (next()) {
  }
  outcome.code = status.error_code();
  outcome.message = status.error_message();
  google::rpc::Status rich;
  if (!status.error_details().empty() && rich.ParseFromString(status.error_details()))
    ReadDetails(rich, &outcome);
  return outcome;
}

}  // namespace stride::testing
