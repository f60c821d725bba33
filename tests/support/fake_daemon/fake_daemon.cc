#include "tests/support/fake_daemon/fake_daemon.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>

#include "tests/support/fake_daemon/fake_job_service.h"
#include "tests/support/fake_daemon/fake_services.h"

namespace stride::testing {

struct FakeDaemon::Impl {
  FakeState state;
  FakeSessionService sessions{state};
  FakeArrayService arrays{state};
  FakeComputeService compute{state};
  FakeDeviceService devices;
  FakeJobService jobs;
  std::unique_ptr<grpc::Server> server;
};

FakeDaemon::FakeDaemon(const std::string& address) : impl_(std::make_unique<Impl>()) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&impl_->sessions);
  builder.RegisterService(&impl_->arrays);
  builder.RegisterService(&impl_->compute);
  builder.RegisterService(&impl_->devices);
  builder.RegisterService(&impl_->jobs);
  impl_->server = builder.BuildAndStart();
}

FakeDaemon::~FakeDaemon() {
  impl_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  impl_->server->Wait();
}

FakeCounters& FakeDaemon::counters() { return impl_->state.counters; }
FakeFaults& FakeDaemon::faults() { return impl_->state.faults; }

size_t FakeDaemon::num_arrays() {
  std::lock_guard lock(impl_->state.mutex);
  return impl_->state.arrays.size();
}

void FakeDaemon::Wait() { impl_->server->Wait(); }

}  // namespace stride::testing
