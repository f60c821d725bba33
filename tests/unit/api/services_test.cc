// The plain adapters through a real server: requests reach the engine, and its responses and
// detailed errors reach the client.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/surroundings.h"
#include "stride/v1/array_service.grpc.pb.h"
#include "stride/v1/device_service.grpc.pb.h"
#include "stride/v1/job_service.grpc.pb.h"
#include "stride/v1/kernel_service.grpc.pb.h"
#include "stride/v1/session_service.grpc.pb.h"
#include "tests/support/test_server.h"

namespace stride::api {
namespace {

using stride::testing::DetailsOf;
using stride::testing::TestServer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SessionServiceTest, SessionCallsAndErrors) {
  TestServer server;
  auto stub = v1::SessionService::NewStub(server.Connect());
  grpc::ClientContext create, get, none, broken;
  v1::CreateSessionRequest create_request;
  create_request.set_session_id("abc");
  v1::CreateSessionResponse created;
  ASSERT_TRUE(stub->CreateSession(&create, create_request, &created).ok());
  EXPECT_EQ(created.session().name(), "sessions/abc");
  EXPECT_THAT(server.engine().tenants_seen(), ElementsAre("default"));
  v1::GetSessionRequest request;
  v1::GetSessionResponse response;
  request.set_name("sessions/none");
  grpc::Status status = stub->GetSession(&none, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(DetailsOf(status).info.metadata().at("name"), "sessions/none");
  request.set_name("sessions/broken");
  status = stub->GetSession(&broken, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_THAT(status.error_message(), Not(HasSubstr("secret")));
  auto counters = server.front().counters().Snapshot();
  EXPECT_EQ(counters["SessionService/GetSession"].started, 2);
  EXPECT_EQ(counters["SessionService/GetSession"].handled[grpc::StatusCode::INTERNAL], 1);
  EXPECT_EQ(counters["SessionService/CreateSession"].handled[0], 1);
}

TEST(TenantTest, TenantHeaderCountsOnlyWhenTrusted) {
  for (bool trusted : {false, true}) {
    FrontOptions options;
    options.trust_tenant_header = trusted;
    TestServer server(options);
    auto stub = v1::SessionService::NewStub(server.Connect());
    grpc::ClientContext context, bad;
    v1::CreateSessionRequest request;
    v1::CreateSessionResponse response;
    context.AddMetadata("stride-tenant", "team-7");
    ASSERT_TRUE(stub->CreateSession(&context, request, &response).ok());
    EXPECT_THAT(server.engine().tenants_seen(), ElementsAre(trusted ? "team-7" : "default"));
    bad.AddMetadata("stride-tenant", "Team/7");
    grpc::Status status = stub->CreateSession(&bad, request, &response);
    EXPECT_EQ(status.error_code(),
              trusted ? grpc::StatusCode::INVALID_ARGUMENT : grpc::StatusCode::OK);
    if (trusted) {
      EXPECT_EQ(DetailsOf(status).field(), "stride-tenant");
    }
  }
}

TEST(KernelServiceTest, LongLogIsDelivered) {
  TestServer server;
  auto stub = v1::KernelService::NewStub(server.Connect());
  grpc::ClientContext context, wrong;
  v1::CreateModuleRequest request;
  v1::CreateModuleResponse response;
  request.set_module_id("m");
  request.mutable_module()->set_source("right");
  ASSERT_TRUE(stub->CreateModule(&context, request, &response).ok());
  EXPECT_EQ(response.module().name(), "tenants/default/modules/m");
  request.mutable_module()->set_source("wrong");
  grpc::Status status = stub->CreateModule(&wrong, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_EQ(DetailsOf(status).info.reason(), "COMPILE_FAILED");
  EXPECT_EQ(DetailsOf(status).field(), "module.source");
}

TEST(JobServiceTest, WatchReportsEveryChangeAndEnds) {
  TestServer server;
  auto stub = v1::JobService::NewStub(server.Connect());
  grpc::ClientContext create, watch, cancel, rest;
  v1::CreateJobRequest request;
  request.set_job_id("j");
  v1::CreateJobResponse created;
  ASSERT_TRUE(stub->CreateJob(&create, request, &created).ok());
  v1::WatchJobRequest watch_request;
  watch_request.set_name(created.job().name());
  auto reader = stub->WatchJob(&watch, watch_request);
  v1::WatchJobResponse event;
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.state(), v1::Job::STATE_QUEUED);
  v1::CancelJobRequest cancel_request;
  cancel_request.set_name(created.job().name());
  v1::CancelJobResponse cancelled;
  ASSERT_TRUE(stub->CancelJob(&cancel, cancel_request, &cancelled).ok());
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.state(), v1::Job::STATE_CANCELLED);
  EXPECT_FALSE(reader->Read(&event));
  EXPECT_TRUE(reader->Finish().ok());
  // All changes were reported already: the watch ends at once.
  watch_request.set_after_sequence(2);
  auto second = stub->WatchJob(&rest, watch_request);
  EXPECT_FALSE(second->Read(&event));
  EXPECT_TRUE(second->Finish().ok());
}

TEST(DeviceServiceTest, ListsInPages) {
  TestServer server;
  auto stub = v1::DeviceService::NewStub(server.Connect());
  v1::ListDevicesRequest request;
  request.set_page_size(1);
  std::vector<std::string> names;
  do {
    grpc::ClientContext context;
    v1::ListDevicesResponse response;
    ASSERT_TRUE(stub->ListDevices(&context, request, &response).ok());
    for (const auto& device : response.devices()) names.push_back(device.name());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(names, ElementsAre("devices/cpu:0", "devices/cpu:1"));
  for (const char* token : {"x", "-1"}) {
    grpc::ClientContext context;
    v1::ListDevicesResponse response;
    request.set_page_token(token);
    EXPECT_EQ(DetailsOf(stub->ListDevices(&context, request, &response)).field(), "page_token");
  }
  grpc::ClientContext context;
  v1::GetDeviceRequest get;
  get.set_name("devices/cpu:9");
  v1::GetDeviceResponse got;
  EXPECT_EQ(DetailsOf(stub->GetDevice(&context, get, &got)).info.reason(), "DEVICE_NOT_FOUND");
}

TEST(DeviceServiceTest, WatchSendsRequestedSamples) {
  TestServer server;
  auto stub = v1::DeviceService::NewStub(server.Connect());
  grpc::ClientContext context;
  v1::WatchDevicesRequest request;
  request.add_names("devices/cpu:1");
  request.mutable_interval()->set_nanos(50000000);
  request.set_max_samples(3);
  auto reader = stub->WatchDevices(&context, request);
  v1::WatchDevicesResponse response;
  int count = 0;
  while (reader->Read(&response)) {
    ++count;
    ASSERT_EQ(response.samples_size(), 1);
    EXPECT_EQ(response.samples(0).device(), "devices/cpu:1");
    EXPECT_EQ(response.samples(0).queue_depth(), 3);
    EXPECT_GT(response.samples(0).memory_total_bytes(), 0);
  }
  EXPECT_EQ(count, 3);
  EXPECT_TRUE(reader->Finish().ok());
}

TEST(DeviceServiceTest, AliasFindsTheDeviceByName) {
  TestServer server;
  server.engine().SetDeviceName(1, "devices/GPU-4a1c");
  auto stub = v1::DeviceService::NewStub(server.Connect());
  {
    grpc::ClientContext context;
    v1::GetDeviceRequest request;
    request.set_name("devices/cpu:1");
    v1::GetDeviceResponse response;
    ASSERT_TRUE(stub->GetDevice(&context, request, &response).ok());
    EXPECT_EQ(response.device().name(), "devices/GPU-4a1c");
  }
  grpc::ClientContext context;
  v1::WatchDevicesRequest request;
  request.add_names("devices/cpu:1");
  request.set_max_samples(1);
  auto reader = stub->WatchDevices(&context, request);
  v1::WatchDevicesResponse response;
  ASSERT_TRUE(reader->Read(&response));
  ASSERT_EQ(response.samples_size(), 1);
  EXPECT_EQ(response.samples(0).device(), "devices/GPU-4a1c");
  while (reader->Read(&response)) {
  }
  EXPECT_TRUE(reader->Finish().ok());
}

TEST(DeviceServiceTest, WatchChecksItsRequest) {
  TestServer server;
  auto stub = v1::DeviceService::NewStub(server.Connect());
  auto fails = [&](const v1::WatchDevicesRequest& request) {
    grpc::ClientContext context;
    auto reader = stub->WatchDevices(&context, request);
    v1::WatchDevicesResponse response;
    EXPECT_FALSE(reader->Read(&response));
    return DetailsOf(reader->Finish());
  };
  v1::WatchDevicesRequest request;
  request.mutable_interval()->set_nanos(49999999);
  EXPECT_EQ(fails(request).field(), "interval");
  request.mutable_interval()->set_seconds(3601);
  EXPECT_EQ(fails(request).field(), "interval");
  request.clear_interval();
  request.set_max_samples(-1);
  EXPECT_EQ(fails(request).field(), "max_samples");
  request.set_max_samples(1);
  request.add_names("devices/none");
  EXPECT_EQ(fails(request).info.reason(), "DEVICE_NOT_FOUND");
}

TEST(DeviceServiceTest, WatchEndsWhenTheServerStops) {
  TestServer server;
  auto stub = v1::DeviceService::NewStub(server.Connect());
  grpc::ClientContext context;
  auto reader = stub->WatchDevices(&context, {});
  v1::WatchDevicesResponse response;
  ASSERT_TRUE(reader->Read(&response));
  server.front().Stop(Now() + absl::Seconds(5));
  while (reader->Read(&response)) {
  }
  grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(DetailsOf(status).info.reason(), "DRAINING");
}

}  // namespace
}  // namespace stride::api
