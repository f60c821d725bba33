// The services of FakeDaemon.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "stride/v1/array_service.grpc.pb.h"
#include "stride/v1/compute_service.grpc.pb.h"
#include "stride/v1/device_service.grpc.pb.h"
#include "stride/v1/session_service.grpc.pb.h"
#include "tests/support/fake_daemon/fake_daemon.h"

namespace stride::testing {

struct FakeArray {
  v1::ArraySpec spec;
  std::string data;
  int64_t arrived = 0;
  google::rpc::Status error;  // code 0: none
};

struct FakeState {
  std::mutex mutex;
  std::map<std::string, FakeArray> arrays;  // by full name; guarded by mutex
  FakeCounters counters;
  FakeFaults faults;
};

// A status with ErrorInfo, as the contract requires.
google::rpc::Status RichStatus(int code, const std::string& reason, const std::string& message);
grpc::Status ToGrpc(const google::rpc::Status& status);

class FakeSessionService : public v1::SessionService::Service {
 public:
  explicit FakeSessionService(FakeState& state) : state_(state) {}
  grpc::Status CreateSession(grpc::ServerContext*, const v1::CreateSessionRequest*,
                             v1::CreateSessionResponse*) override;
  grpc::Status RenewSession(grpc::ServerContext*, const v1::RenewSessionRequest*,
                            v1::RenewSessionResponse*) override;
  grpc::Status DeleteSession(grpc::ServerContext*, const v1::DeleteSessionRequest*,
                             v1::DeleteSessionResponse*) override;

 private:
  FakeState& state_;
};

class FakeArrayService : public v1::ArrayService::Service {
 public:
  explicit FakeArrayService(FakeState& state) : state_(state) {}
  grpc::Status PutArray(grpc::ServerContext*, grpc::ServerReader<v1::PutArrayRequest>*,
                        v1::PutArrayResponse*) override;
  grpc::Status FetchArray(grpc::ServerContext*, const v1::FetchArrayRequest*,
                          grpc::ServerWriter<v1::FetchArrayResponse>*) override;
  grpc::Status GetArray(grpc::ServerContext*, const v1::GetArrayRequest*,
                        v1::GetArrayResponse*) override;
  grpc::Status ListArrays(grpc::ServerContext*, const v1::ListArraysRequest*,
                          v1::ListArraysResponse*) override;
  grpc::Status DeleteArray(grpc::ServerContext*, const v1::DeleteArrayRequest*,
                           v1::DeleteArrayResponse*) override;

 private:
  FakeState& state_;
};

class FakeComputeService : public v1::ComputeService::Service {
 public:
  explicit FakeComputeService(FakeState& state) : state_(state) {}
  grpc::Status Execute(grpc::ServerContext*,
                       grpc::ServerReaderWriter<v1::ExecuteResponse, v1::ExecuteRequest>*) override;

 private:
  v1::CommandResult Answer(const std::string& session, const v1::Command& command);
  v1::CommandResult Operate(const std::string& session, const v1::Command& command);
  FakeState& state_;
};

class FakeDeviceService : public v1::DeviceService::Service {
 public:
  grpc::Status ListDevices(grpc::ServerContext*, const v1::ListDevicesRequest*,
                           v1::ListDevicesResponse*) override;
  grpc::Status WatchDevices(grpc::ServerContext*, const v1::WatchDevicesRequest*,
                            grpc::ServerWriter<v1::WatchDevicesResponse>*) override;
};

}  // namespace stride::testing
