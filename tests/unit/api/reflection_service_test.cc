#include <grpcpp/client_context.h>

#include "gmock/gmock.h"
#include "google/protobuf/descriptor.pb.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "gtest/gtest.h"
#include "tests/support/test_server.h"

namespace stride::api {
namespace {

using grpc::reflection::v1::ServerReflection;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;
using stride::testing::TestServer;
using ::testing::Contains;

class ReflectionServiceTest : public ::testing::Test {
 protected:
  ServerReflectionResponse Ask(const ServerReflectionRequest& request) {
    grpc::ClientContext context;
    auto stream = stub_->ServerReflectionInfo(&context);
    EXPECT_TRUE(stream->Write(request));
    ServerReflectionResponse response;
    EXPECT_TRUE(stream->Read(&response));
    stream->WritesDone();
    EXPECT_TRUE(stream->Finish().ok());
    return response;
  }

  TestServer server_;
  std::unique_ptr<ServerReflection::Stub> stub_ = ServerReflection::NewStub(server_.Connect());
};

TEST_F(ReflectionServiceTest, ListsEveryService) {
  ServerReflectionRequest request;
  request.set_list_services("");
  std::vector<std::string> names;
  const ServerReflectionResponse response = Ask(request);
  for (const auto& service : response.list_services_response().service())
    names.push_back(service.name());
  // Every service of the contract, each with its file.
  EXPECT_EQ(names.size(), 13u);
  for (const std::string& name : names) {
    request.set_file_containing_symbol(name);
    EXPECT_TRUE(Ask(request).has_file_descriptor_response()) << name;
  }
  EXPECT_THAT(names, Contains("stride.v1.ComputeService"));
  EXPECT_THAT(names, Contains("grpc.reflection.v1.ServerReflection"));
}

TEST_F(ReflectionServiceTest, FileIsReturnedWithItsImports) {
  ServerReflectionRequest request;
  request.set_file_by_filename("stride/v1/compute_service.proto");
  std::vector<std::string> names;
  const ServerReflectionResponse response = Ask(request);
  for (const std::string& bytes : response.file_descriptor_response().file_descriptor_proto()) {
    google::protobuf::FileDescriptorProto file;
    ASSERT_TRUE(file.ParseFromString(bytes));
    names.push_back(file.name());
  }
  EXPECT_THAT(names, Contains("stride/v1/operation.proto"));
  EXPECT_THAT(names, Contains("google/rpc/status.proto"));
}

TEST_F(ReflectionServiceTest, UnknownNamesAreNotFound) {
  ServerReflectionRequest request;
  request.set_file_containing_symbol("stride.v1.Nothing");
  EXPECT_EQ(Ask(request).error_response().error_code(), grpc::StatusCode::NOT_FOUND);
  request.set_file_by_filename("nothing.proto");
  EXPECT_EQ(Ask(request).error_response().error_code(), grpc::StatusCode::NOT_FOUND);
  request.Clear();
  EXPECT_EQ(Ask(request).error_response().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ReflectionServiceTest, LargeRequestIsNotParsed) {
  ServerReflectionRequest request;
  request.set_file_by_filename(std::string(1 << 20, 'x'));
  grpc::ClientContext context;
  auto stream = stub_->ServerReflectionInfo(&context);
  stream->Write(request);
  ServerReflectionResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace stride::api
