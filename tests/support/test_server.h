#pragma once

#include <memory>
#include <string>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/api/front.h"
#include "server/metrics/sampler.h"
#include "stride/v1/compute_service.pb.h"
#include "tests/support/fake_engine.h"
#include "tests/support/temporary_folder.h"

namespace stride::testing {

using test_support::TemporaryFolder;

// All services over a FakeEngine on a Unix socket in a temporary folder.
class TestServer {
 public:
  explicit TestServer(api::FrontOptions options = {});

  FakeEngine& engine() { return engine_; }
  api::Front& front() { return *front_; }
  const std::string& target() const { return target_; }
  // A separate connection.
  std::shared_ptr<grpc::Channel> Connect() const;

 private:
  TemporaryFolder folder_;
  FakeEngine engine_;
  metrics::Sampler sampler_;
  std::unique_ptr<api::Front> front_;
  std::string target_;
};

// Run of a copy of these bytes, with an inline result.
v1::RunRequest CopyOf(const std::string& bytes);

// The detailed half of an error as a client reads it.
struct ErrorDetails {
  google::rpc::Status status;
  google::rpc::ErrorInfo info;
  google::rpc::BadRequest bad_request;
  google::rpc::RetryInfo retry;
  std::string field() const;  // field of the first violation; empty if none
};
ErrorDetails DetailsOf(const grpc::Status& status);
ErrorDetails DetailsOf(const google::rpc::Status& status);

}  // namespace stride::testing
