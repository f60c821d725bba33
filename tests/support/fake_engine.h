#pragma once

#include <atomic>

#include "server/engine/engine.h"
#include "server/engine/service/function_service.h"
#include "server/engine/service/program_service.h"
#include "server/engine/service/tenant_service.h"
#include "server/session/tenant_accounts.h"
#include "tests/support/fake_arrays.h"
#include "tests/support/fake_devices.h"
#include "tests/support/fake_jobs.h"
#include "tests/support/fake_modules.h"
#include "tests/support/fake_operations.h"
#include "tests/support/fake_regions.h"
#include "tests/support/fake_sessions.h"

namespace stride::testing {

// Each method answers UNIMPLEMENTED.
class NoFunctions : public engine::FunctionService {
 public:
  absl::StatusOr<v1::Function> Create(const TenantId&, const v1::CreateFunctionRequest&,
                                      SteadyTime) override;
  absl::StatusOr<v1::Function> Get(const TenantId&, const std::string&) override;
  absl::StatusOr<v1::ListFunctionsResponse> List(const TenantId&,
                                                 const v1::ListFunctionsRequest&) override;
  absl::Status Delete(const TenantId&, const std::string&) override;
};

// Each method answers UNIMPLEMENTED.
class NoPrograms : public engine::ProgramService {
 public:
  absl::StatusOr<v1::CreateProgramResponse> Create(const TenantId&,
                                                   const v1::CreateProgramRequest&) override;
  absl::StatusOr<v1::Program> Get(const TenantId&, const std::string&) override;
  absl::StatusOr<v1::ListProgramsResponse> List(const TenantId&,
                                                const v1::ListProgramsRequest&) override;
  absl::Status Delete(const TenantId&, const std::string&) override;
};

// Describes tenants from their accounts.
class FakeTenants : public engine::TenantService {
 public:
  explicit FakeTenants(session::TenantAccounts* accounts) : accounts_(accounts) {}
  v1::Usage GetUsage(const TenantId& tenant) override { return accounts_->Describe(tenant); }

 private:
  session::TenantAccounts* const accounts_;
};

// An engine without devices: one fake for each interface, for tests of the whole front.
// Thread-safe.
class FakeEngine : public engine::Engine {
 public:
  FakeSessions& sessions() override { return sessions_; }
  FakeArrays& arrays() override { return arrays_; }
  FakeRegions& regions() override { return regions_; }
  FakeOperations& operations() override { return operations_; }
  FakeJobs& jobs() override { return jobs_; }
  FakeModules& modules() override { return modules_; }
  NoFunctions& functions() override { return functions_; }
  NoPrograms& programs() override { return programs_; }
  FakeDevices& devices() override { return devices_; }
  FakeTenants& tenants() override { return tenants_; }
  session::TenantAccounts& accounts() override { return accounts_; }

  bool Responds(absl::Duration) override { return !stuck_; }
  // Responds returns false from now on.
  void Stick() { stuck_ = true; }
  // Waits until no operation is held.
  bool Drain(SteadyTime deadline) override { return operations_.AwaitIdle(deadline); }
  void StopRecording() override {}

 private:
  std::atomic<bool> stuck_{false};
  session::TenantAccounts accounts_;
  FakeSessions sessions_;
  FakeArrays arrays_;
  FakeOperations operations_{&arrays_};
  FakeJobs jobs_;
  FakeModules modules_;
  FakeDevices devices_;
  FakeTenants tenants_{&accounts_};
  FakeRegions regions_;
  NoFunctions functions_;
  NoPrograms programs_;
};

}  // namespace stride::testing
