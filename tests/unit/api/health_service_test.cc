#include "server/api/health_service.h"

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/support/adapter_server.h"
#include "tests/support/fake_devices.h"

namespace stride::api {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using stride::testing::AdapterServer;
using stride::testing::FakeDevices;

class HealthServiceTest : public ::testing::Test {
 protected:
  grpc::Status Check(const std::string& name, HealthCheckResponse::ServingStatus* state) {
    grpc::ClientContext context;
    HealthCheckRequest request;
    request.set_service(name);
    HealthCheckResponse response;
    grpc::Status status = stub_->Check(&context, request, &response);
    *state = response.status();
    return status;
  }

  HealthCheckResponse::ServingStatus StateOf(const std::string& name) {
    HealthCheckResponse::ServingStatus state;
    EXPECT_TRUE(Check(name, &state).ok()) << name;
    return state;
  }

  void SetUp() override {
    auto service = std::make_unique<HealthService>(server_.environment(), &devices_);
    service_ = service.get();
    stub_ = grpc::health::v1::Health::NewStub(server_.Serve(std::move(service)));
  }

  FakeDevices devices_;
  AdapterServer server_;
  HealthService* service_ = nullptr;
  std::unique_ptr<grpc::health::v1::Health::Stub> stub_;
};

TEST_F(HealthServiceTest, ReportsDeviceHealth) {
  EXPECT_EQ(StateOf(""), HealthCheckResponse::SERVING);
  EXPECT_EQ(StateOf("stride.v1.ComputeService"), HealthCheckResponse::SERVING);
  devices_.SetState(0, v1::Device::STATE_NOT_SERVING);
  EXPECT_EQ(StateOf("devices/cpu:0"), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(StateOf("devices/cpu:1"), HealthCheckResponse::SERVING);
  EXPECT_EQ(StateOf("stride.v1.ComputeService"), HealthCheckResponse::SERVING)
      << "one device is enough";
  devices_.SetState(1, v1::Device::STATE_NOT_SERVING);
  EXPECT_EQ(StateOf("stride.v1.ComputeService"), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(StateOf("stride.v1.ArrayService"), HealthCheckResponse::SERVING)
      << "arrays can still be read";
  EXPECT_EQ(StateOf(""), HealthCheckResponse::NOT_SERVING);
}

TEST_F(HealthServiceTest, UnknownNamesAreNotFound) {
  HealthCheckResponse::ServingStatus state;
  EXPECT_EQ(Check("nobody", &state).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(HealthServiceTest, WatchReportsChangesAndDrainAtOnce) {
  grpc::ClientContext context;
  HealthCheckRequest request;
  request.set_service("devices/cpu:0");
  auto reader = stub_->Watch(&context, request);
  HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  devices_.SetState(0, v1::Device::STATE_NOT_SERVING);
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  devices_.SetState(0, v1::Device::STATE_SERVING);
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  service_->BeginDrain();
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(StateOf(""), HealthCheckResponse::NOT_SERVING);
  server_.environment()->stopping = true;
  EXPECT_FALSE(reader->Read(&response));
}

TEST_F(HealthServiceTest, WatchOfAnUnknownNameStaysOpen) {
  grpc::ClientContext context;
  HealthCheckRequest request;
  request.set_service("nobody");
  auto reader = stub_->Watch(&context, request);
  HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVICE_UNKNOWN);
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace stride::api
