#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/base/steady_time.h"
#include "server/ops/operation_view.h"
#include "server/scheduler/engine.h"

namespace stride::testing {

// An engine without devices: arrays are strings in memory, and of all operations it knows Copy of a
// handle or inline array and Creation.fill of uint8 zeros. Tests hold work back (`hold`) to look at
// what happens meanwhile. Thread-safe.
class FakeEngine : public scheduler::Engine {
 public:
  FakeEngine();
  ~FakeEngine() override;

  // --- what tests set and ask ---
  // Operations accepted from now on stay unfinished until Release() lets them go.
  void Hold();
  void LetGo();
  // Whether results are there at the end, or only for who waits for them (ReadInline).
  void SetReadsAtOnce(bool reads);
  // The next Submit, or any call on the named array, answers this.
  void FailNextSubmit(absl::Status status);
  void FailArray(const std::string& name, absl::Status status);
  // The next accepted operation ends with this.
  void FailNextWork(absl::Status status);
  void SetDeviceName(int device, const std::string& name);
  void SetDeviceState(int device, v1::Device::State state);
  int num_submitted() const;
  int num_cancelled() const;
  int num_open_uploads() const;
  // Chunks that Download::Next lent and nobody has given back.
  int num_leases() const;
  std::string BytesOf(const std::string& name) const;
  void PutBytes(const std::string& name, std::string bytes);
  // Of every new session and operation.
  std::vector<std::string> tenants_seen() const;

  // --- Engine ---
  absl::StatusOr<v1::Session> CreateSession(const TenantId& tenant,
                                            const v1::CreateSessionRequest& request) override;
  absl::StatusOr<v1::Session> GetSession(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<v1::Session> RenewSession(const TenantId& tenant,
                                           const std::string& name) override;
  absl::Status DeleteSession(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<v1::ReadPrintedResponse> ReadPrinted(const TenantId& tenant,
                                                      const std::string& name) override;
  absl::StatusOr<v1::Array> CreateArray(const TenantId& tenant,
                                        const v1::CreateArrayRequest& request) override;
  absl::StatusOr<v1::Array> GetArray(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<v1::ListArraysResponse> ListArrays(const TenantId& tenant,
                                                    const v1::ListArraysRequest& request) override;
  absl::Status DeleteArray(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<std::unique_ptr<scheduler::Upload>> BeginUpload(
      const TenantId& tenant, const v1::PutArrayRequest::Header& header,
      SteadyTime deadline) override;
  absl::StatusOr<std::unique_ptr<scheduler::Download>> BeginDownload(
      const TenantId& tenant, const v1::FetchArrayRequest& request, SteadyTime deadline) override;
  absl::StatusOr<std::shared_ptr<scheduler::Ticket>> Submit(const TenantId& tenant,
                                                            const std::string& session,
                                                            const ops::OperationView& operation,
                                                            SteadyTime deadline) override;
  absl::Status Release(const TenantId& tenant, const std::string& session,
                       const v1::Release& release) override;
  absl::StatusOr<std::unique_ptr<scheduler::InlineFetch>> BeginFetch(const TenantId& tenant,
                                                                     const std::string& session,
                                                                     uint64_t handle) override;
  absl::StatusOr<v1::Job> CreateJob(const TenantId& tenant,
                                    const v1::CreateJobRequest& request) override;
  absl::StatusOr<v1::Job> GetJob(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<v1::ListJobsResponse> ListJobs(const TenantId& tenant,
                                                const v1::ListJobsRequest& request) override;
  absl::StatusOr<v1::Job> CancelJob(const TenantId& tenant, const std::string& name) override;
  absl::Status DeleteJob(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<std::vector<v1::WatchJobResponse>> NextJobEvents(const TenantId& tenant,
                                                                  const std::string& name,
                                                                  uint64_t after_sequence,
                                                                  SteadyTime deadline) override;
  absl::StatusOr<v1::Module> CreateModule(const TenantId& tenant,
                                          const v1::CreateModuleRequest& request,
                                          SteadyTime deadline) override;
  absl::StatusOr<v1::Module> GetModule(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<v1::ListModulesResponse> ListModules(
      const TenantId& tenant, const v1::ListModulesRequest& request) override;
  absl::Status DeleteModule(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<v1::Function> CreateFunction(const TenantId&, const v1::CreateFunctionRequest&,
                                              SteadyTime) override {
    return absl::UnimplementedError("the fake has no functions");
  }
  absl::StatusOr<v1::Function> GetFunction(const TenantId&, const std::string&) override {
    return absl::UnimplementedError("the fake has no functions");
  }
  absl::StatusOr<v1::ListFunctionsResponse> ListFunctions(
      const TenantId&, const v1::ListFunctionsRequest&) override {
    return absl::UnimplementedError("the fake has no functions");
  }
  absl::Status DeleteFunction(const TenantId&, const std::string&) override {
    return absl::UnimplementedError("the fake has no functions");
  }
  absl::StatusOr<v1::CreateProgramResponse> CreateProgram(
      const TenantId&, const v1::CreateProgramRequest&) override {
    return absl::UnimplementedError("the fake has no programs");
  }
  absl::StatusOr<v1::Program> GetProgram(const TenantId&, const std::string&) override {
    return absl::UnimplementedError("the fake has no programs");
  }
  absl::StatusOr<v1::ListProgramsResponse> ListPrograms(const TenantId&,
                                                        const v1::ListProgramsRequest&) override {
    return absl::UnimplementedError("the fake has no programs");
  }
  absl::Status DeleteProgram(const TenantId&, const std::string&) override {
    return absl::UnimplementedError("the fake has no programs");
  }
  std::vector<v1::Device> ListDevices() override;
  std::vector<v1::DeviceSample> SampleDevices() override;
  void AwaitHealth(SteadyTime deadline) override {}
  void DeviceBroke(const std::string& device, const std::string& why) override {}
  bool Responds(absl::Duration patience) override { return !stuck_; }
  // Responds says no from now on.
  void Stick() { stuck_ = true; }
  session::TenantAccounts& accounts() override { return *accounts_; }
  v1::Usage GetUsage(const TenantId& tenant) override { return accounts_->Describe(tenant); }
  bool Drain(SteadyTime deadline) override;

 private:
  friend class FakeFetch;
  friend class FakeTicket;
  friend class FakeUpload;
  friend class FakeDownload;
  struct State;
  std::atomic<bool> stuck_{false};
  std::shared_ptr<State> state_;
  const std::shared_ptr<session::TenantAccounts> accounts_ =
      std::make_shared<session::TenantAccounts>();
};

}  // namespace stride::testing
