// Checks of a message, in every method and over gRPC, before it reaches the engine.

#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/sync_stream.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "server/identity/identity.h"
#include "stride/v1/compute_service.grpc.pb.h"
#include "stride/v1/device_service.grpc.pb.h"
#include "tests/support/test_server.h"

namespace stride::api {
namespace {

using stride::testing::DetailsOf;
using stride::testing::TemporaryFolder;
using stride::testing::TestServer;

// Every method of the contract, as gRPC names it.
std::vector<std::string> Methods() {
  std::vector<std::string> names;
  for (const char* name : {"ArrayService", "ComputeService", "DeviceService", "FunctionService",
                           "JobService", "KernelService", "LocalService", "ProgramService",
                           "RegionService", "SessionService", "TenantService"}) {
    const auto* service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
        absl::StrCat("stride.v1.", name));
    if (service == nullptr) {
      ADD_FAILURE() << name;
      continue;
    }
    for (int i = 0; i < service->method_count(); ++i)
      names.push_back(absl::StrCat("/stride.v1.", name, "/", service->method(i)->name()));
  }
  EXPECT_GE(names.size(), 35);
  return names;
}

grpc::ByteBuffer BytesOf(const std::string& text) {
  grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

// Calls the method with these bytes as the message; with null, sends no message and does not end
// the stream.
grpc::Status CallWith(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                      const std::string* message) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(100));
  const grpc::internal::RpcMethod rpc(method.c_str(), grpc::internal::RpcMethod::BIDI_STREAMING);
  using Stream = grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;
  std::unique_ptr<Stream> stream(
      grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(
          channel.get(), rpc, &context));
  if (message != nullptr) {
    stream->Write(BytesOf(*message));
    stream->WritesDone();
  }
  grpc::ByteBuffer answer;
  while (stream->Read(&answer)) {
  }
  return stream->Finish();
}

TEST(RawMethodsTest, MalformedMessageIsInvalidInEveryMethod) {
  TestServer server;
  const auto channel = server.Connect();
  const std::string groups = std::string(101, '\x7b') + std::string(101, '\x7c');
  for (const std::string& method : Methods()) {
    for (const std::string& message : {groups, std::string("\xff"), std::string("\x0e")}) {
      const grpc::Status status = CallWith(channel, method, &message);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
      EXPECT_NE(status.error_message().find("malformed"), std::string::npos)
          << method << ": " << status.error_message();
    }
  }
}

TEST(RawMethodsTest, InvalidUtf8IsNamedInEveryMethod) {
  TestServer server;
  const auto channel = server.Connect();
  int count = 0;
  for (const std::string& method : Methods()) {
    const std::string name = method.substr(1, method.rfind('/') - 1);
    const auto* type = google::protobuf::DescriptorPool::generated_pool()
                           ->FindServiceByName(name)
                           ->FindMethodByName(method.substr(method.rfind('/') + 1))
                           ->input_type();
    const auto* first = type->FindFieldByNumber(1);
    if (first == nullptr || first->type() != google::protobuf::FieldDescriptor::TYPE_STRING)
      continue;
    const std::string message("\x0a\x01\xff", 3);
    const grpc::Status status = CallWith(channel, method, &message);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
    EXPECT_EQ(DetailsOf(status).field(), first->name()) << method;
    EXPECT_NE(status.error_message().find("UTF-8"), std::string::npos) << method;
    ++count;
  }
  EXPECT_GT(count, 25);
}

TEST(RawMethodsTest, UnknownFieldIsUnimplementedInEveryMethod) {
  TestServer server;
  const auto channel = server.Connect();
  const std::string message("\x98\x06\x01", 3);
  for (const std::string& method : Methods()) {
    const grpc::Status status = CallWith(channel, method, &message);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << method;
    EXPECT_EQ(DetailsOf(status).field(), "99") << method;
    EXPECT_TRUE(absl::StrContains(status.error_message(), "field 99")) << method;
  }
}

TEST(RawMethodsTest, UnknownOperationIsUnimplementedByNumber) {
  TestServer server;
  const std::string message("\x12\x03\x9a\x06\x00", 5);  // operation.99, a message
  const grpc::Status status = CallWith(server.Connect(), "/stride.v1.ComputeService/Run", &message);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(DetailsOf(status).field(), "operation.99");
  EXPECT_EQ(DetailsOf(status).info.reason(), "NOT_IMPLEMENTED");
}

TEST(RawMethodsTest, DurationWithMixedSignsIsRefused) {
  TestServer server;
  auto stub = v1::DeviceService::NewStub(server.Connect());
  v1::WatchDevicesRequest request;
  request.mutable_interval()->set_seconds(1);
  request.mutable_interval()->set_nanos(-5);
  grpc::ClientContext context;
  auto reader = stub->WatchDevices(&context, request);
  v1::WatchDevicesResponse response;
  EXPECT_FALSE(reader->Read(&response));
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailsOf(status).field(), "interval");
}

TEST(RawMethodsTest, ControlMethodsRefuseLargeMessages) {
  TestServer server;
  const std::string message = "\x0a\x81\x80\x04" + std::string((64 << 10) + 1, 'n');
  const grpc::Status status =
      CallWith(server.Connect(), "/stride.v1.ArrayService/GetArray", &message);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailsOf(status).info.reason(), "SIZE_LIMIT");
}

TEST(RawMethodsTest, UnauthenticatedCallIsRefusedBeforeParsing) {
  TemporaryFolder folder;
  const std::string path = folder.Path("tenants.conf");
  std::ofstream(path) << "[tenant a]\ntoken = sha256:" << std::string(64, '0') << "\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  auto identity = identity::Identity::Open(path, {});
  ASSERT_TRUE(identity.ok()) << identity.status();
  FrontOptions options;
  options.identity = identity->get();
  TestServer server(options);
  const auto channel = server.Connect();
  const std::string malformed = "\xff";
  for (const std::string& method : Methods()) {
    for (const std::string* message : {static_cast<const std::string*>(nullptr), &malformed}) {
      const grpc::Status status = CallWith(channel, method, message);
      const bool refused = status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
                           status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
      EXPECT_TRUE(refused) << method << ": " << status.error_code() << status.error_message();
      EXPECT_EQ(DetailsOf(status).info.reason(), "UNAUTHENTICATED") << method;
    }
  }
}

TEST(RawMethodsTest, HealthAndReflectionRefuseLargeMessages) {
  TestServer server;
  const std::string large = "\x0a\x81\x20" + std::string(4097, 'n');
  const std::string newer("\x98\x06\x01", 3);
  const auto channel = server.Connect();
  EXPECT_EQ(CallWith(channel, "/grpc.health.v1.Health/Check", &large).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  for (const char* version : {"v1", "v1alpha"}) {
    const std::string method =
        absl::StrCat("/grpc.reflection.", version, ".ServerReflection/ServerReflectionInfo");
    EXPECT_EQ(CallWith(channel, method, &large).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(CallWith(channel, method, &newer).error_code(), grpc::StatusCode::OK);
  }
  EXPECT_EQ(CallWith(channel, "/grpc.health.v1.Health/Check", &newer).error_code(),
            grpc::StatusCode::OK);
}

}  // namespace
}  // namespace stride::api
