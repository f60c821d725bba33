// The plain adapters through a real server: requests reach the engine, and its responses and
// detailed errors reach the client.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/api/device_service.h"
#include "server/api/job_service.h"
#include "server/api/session_service.h"
#include "server/api/tenant_service.h"
#include "server/base/environment.h"
#include "stride/v1/array_service.grpc.pb.h"
#include "stride/v1/device_service.grpc.pb.h"
#include "stride/v1/job_service.grpc.pb.h"
#include "stride/v1/kernel_service.grpc.pb.h"
#include "stride/v1/session_service.grpc.pb.h"
#include "stride/v1/tenant_service.grpc.pb.h"
#include "tests/support/adapter_server.h"
#include "tests/support/fake_devices.h"
#include "tests/support/fake_jobs.h"
#include "tests/support/fake_sessions.h"
#include "tests/support/test_server.h"

namespace stride::api {
namespace {

using stride::testing::AdapterServer;
using stride::testing::DetailsOf;
using stride::testing::FakeJobs;
using stride::testing::FakeSessions;
using stride::testing::TestServer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SessionServiceTest, SessionCallsAndErrors) {
  FakeSessions sessions;
  AdapterServer server;
  auto stub = v1::SessionService::NewStub(
      server.Serve(std::make_unique<SessionServiceAdapter>(server.environment(), &sessions)));
  grpc::ClientContext create, get, none, broken;
  v1::CreateSessionRequest create_request;
  create_request.set_session_id("abc");
  v1::CreateSessionResponse created;
  ASSERT_TRUE(stub->CreateSession(&create, create_request, &created).ok());
  EXPECT_EQ(created.session().name(), "sessions/abc");
  EXPECT_THAT(sessions.tenants_seen(), ElementsAre("default"));
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
  auto counters = server.counters().Snapshot();
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
    EXPECT_THAT(server.engine().sessions().tenants_seen(),
                ElementsAre(trusted ? "team-7" : "default"));
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
  FakeJobs jobs;
  session::TenantAccounts accounts;
  AdapterServer server;
  auto stub = v1::JobService::NewStub(
      server.Serve(std::make_unique<JobServiceAdapter>(server.environment(), &jobs, &accounts)));
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

class DeviceServiceTest : public ::testing::Test {
 protected:
  stride::testing::FakeDevices devices_;
  metrics::Sampler sampler_{
      {[this] { return devices_.List(); }, [this] { return devices_.Sample(); }, nullptr}};
  AdapterServer server_;
  std::unique_ptr<v1::DeviceService::Stub> stub_ =
      v1::DeviceService::NewStub(server_.Serve(std::make_unique<DeviceServiceAdapter>(
          server_.environment(), &devices_, &sampler_, /*max_descriptors=*/1000,
          /*max_connections=*/100)));
};

TEST_F(DeviceServiceTest, ListsInPages) {
  v1::ListDevicesRequest request;
  request.set_page_size(1);
  std::vector<std::string> names;
  do {
    grpc::ClientContext context;
    v1::ListDevicesResponse response;
    ASSERT_TRUE(stub_->ListDevices(&context, request, &response).ok());
    for (const auto& device : response.devices()) names.push_back(device.name());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(names, ElementsAre("devices/cpu:0", "devices/cpu:1"));
  for (const char* token : {"x", "-1"}) {
    grpc::ClientContext context;
    v1::ListDevicesResponse response;
    request.set_page_token(token);
    EXPECT_EQ(DetailsOf(stub_->ListDevices(&context, request, &response)).field(), "page_token");
  }
  grpc::ClientContext context;
  v1::GetDeviceRequest get;
  get.set_name("devices/cpu:9");
  v1::GetDeviceResponse got;
  EXPECT_EQ(DetailsOf(stub_->GetDevice(&context, get, &got)).info.reason(), "DEVICE_NOT_FOUND");
}

TEST_F(DeviceServiceTest, WatchSendsRequestedSamples) {
  grpc::ClientContext context;
  v1::WatchDevicesRequest request;
  request.add_names("devices/cpu:1");
  request.mutable_interval()->set_nanos(50000000);
  request.set_max_samples(3);
  auto reader = stub_->WatchDevices(&context, request);
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

TEST_F(DeviceServiceTest, AliasFindsTheDeviceByName) {
  devices_.SetName(1, "devices/GPU-4a1c");
  {
    grpc::ClientContext context;
    v1::GetDeviceRequest request;
    request.set_name("devices/cpu:1");
    v1::GetDeviceResponse response;
    ASSERT_TRUE(stub_->GetDevice(&context, request, &response).ok());
    EXPECT_EQ(response.device().name(), "devices/GPU-4a1c");
  }
  grpc::ClientContext context;
  v1::WatchDevicesRequest request;
  request.add_names("devices/cpu:1");
  request.set_max_samples(1);
  auto reader = stub_->WatchDevices(&context, request);
  v1::WatchDevicesResponse response;
  ASSERT_TRUE(reader->Read(&response));
  ASSERT_EQ(response.samples_size(), 1);
  EXPECT_EQ(response.samples(0).device(), "devices/GPU-4a1c");
  while (reader->Read(&response)) {
  }
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(DeviceServiceTest, WatchChecksItsRequest) {
  auto fails = [&](const v1::WatchDevicesRequest& request) {
    grpc::ClientContext context;
    auto reader = stub_->WatchDevices(&context, request);
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

TEST(TenantServiceTest, ReportsTheUsageOfTheCaller) {
  session::TenantAccounts accounts;
  accounts.AddUpload({"default"}, 1100);
  accounts.AddUpload({"other"}, 5);
  stride::testing::FakeTenants tenants(&accounts);
  AdapterServer server;
  auto stub = v1::TenantService::NewStub(
      server.Serve(std::make_unique<TenantServiceAdapter>(server.environment(), &tenants)));
  grpc::ClientContext context;
  v1::GetUsageResponse response;
  ASSERT_TRUE(stub->GetUsage(&context, {}, &response).ok());
  EXPECT_EQ(response.usage().upload_bytes(), 1100);
}

TEST(DeviceWatchTest, EndsWhenTheServerStops) {
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
