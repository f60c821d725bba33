#include "tests/support/test_server.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace stride::testing {
namespace {

template <typename T>
T Must(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "test set-up failed: %s\n", result.status().ToString().c_str());
  std::abort();
}

metrics::Sources SourcesOf(FakeEngine& engine) {
  return {[&] { return engine.devices().List(); }, [&] { return engine.devices().Sample(); },
          nullptr};
}

}  // namespace

TestServer::TestServer(api::FrontOptions options) : sampler_(SourcesOf(engine_)) {
  auto address = Must(api::ParseAddress("unix:" + folder_.Path("stride.sock")));
  std::vector<api::ListeningSocket> sockets;
  sockets.push_back(Must(api::Listen(address, api::Reach::kLocalOnly)));
  front_ = Must(api::Front::Start(options, &engine_, &sampler_, std::move(sockets)));
  target_ = address.ToTarget();
}

std::shared_ptr<grpc::Channel> TestServer::Connect() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(target_, grpc::InsecureChannelCredentials(), arguments);
}

v1::RunRequest CopyOf(const std::string& bytes) {
  v1::RunRequest request;
  auto* array =
      request.mutable_operation()->mutable_copy()->mutable_input()->mutable_inline_array();
  array->mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
  array->mutable_spec()->add_shape(static_cast<int64_t>(bytes.size()));
  array->set_data(bytes);
  request.mutable_operation()->add_outputs()->set_inline_result(true);
  return request;
}

std::string ErrorDetails::field() const {
  return bad_request.field_violations_size() == 0 ? "" : bad_request.field_violations(0).field();
}

ErrorDetails DetailsOf(const google::rpc::Status& status) {
  ErrorDetails details;
  details.status = status;
  for (const auto& any : status.details()) {
    any.UnpackTo(&details.info);
    any.UnpackTo(&details.bad_request);
    any.UnpackTo(&details.retry);
  }
  return details;
}

ErrorDetails DetailsOf(const grpc::Status& status) {
  google::rpc::Status parsed;
  parsed.ParseFromString(status.error_details());
  return DetailsOf(parsed);
}

}  // namespace stride::testing
