#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"
#include "server/broker/broker.h"
#include "server/keeper/keeper.h"
#include "server/scheduler/download.h"
#include "server/scheduler/operation_handle.h"
#include "server/scheduler/options.h"
#include "server/scheduler/redeemed_region.h"
#include "server/scheduler/spill_sample.h"
#include "server/scheduler/submit_batch.h"
#include "server/scheduler/upload.h"
#include "server/session/tenant_accounts.h"
#include "stride/v1/array_service.pb.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/device_service.pb.h"
#include "stride/v1/function_service.pb.h"
#include "stride/v1/job_service.pb.h"
#include "stride/v1/kernel_service.pb.h"
#include "stride/v1/program_service.pb.h"
#include "stride/v1/region_service.pb.h"
#include "stride/v1/session_service.pb.h"
#include "stride/v1/tenant_service.pb.h"

namespace stride::durable {
class DurableStore;
}

namespace stride::scheduler {

// Everything the services ask for. Owns sessions, arrays, jobs, modules and the queues of all
// devices. Thread-safe.
//
// Errors carry google.rpc details (server/base/error.h); field paths are relative to the message
// passed in. Names are checked here: a name of another tenant is NOT_FOUND in the same words as one
// that does not exist.
class Engine {
 public:
  // `broker` must outlive the engine and be Shutdown() before the engine is destroyed: its
  // callbacks lead here.
  //
  // With a keeper that keeps, the engine begins as what `kept` (all that the keeper had) tells of
  // an earlier one, and what is accepted outlives the process. The keeper outlives the engine.
  //
  // With a store, named arrays and jobs are kept on disk too, and the engine begins with what is
  // there when the keeper had nothing. The store outlives the engine, which closes it.
  static std::unique_ptr<Engine> Create(EngineOptions options, broker::Broker* broker,
                                        keeper::Keeper* keeper = nullptr,
                                        std::vector<NamedFd> kept = {},
                                        durable::DurableStore* store = nullptr);
  virtual ~Engine() = default;

  // --- sessions (server/session) ---
  virtual absl::StatusOr<v1::Session> CreateSession(const TenantId& tenant,
                                                    const v1::CreateSessionRequest& request) = 0;
  virtual absl::StatusOr<v1::Session> GetSession(const TenantId& tenant,
                                                 const std::string& name) = 0;
  virtual absl::StatusOr<v1::Session> RenewSession(const TenantId& tenant,
                                                   const std::string& name) = 0;
  virtual absl::Status DeleteSession(const TenantId& tenant, const std::string& name) = 0;
  virtual absl::StatusOr<v1::ReadPrintedResponse> ReadPrinted(const TenantId& tenant,
                                                              const std::string& name) = 0;

  // --- arrays ---
  virtual absl::StatusOr<v1::Array> CreateArray(const TenantId& tenant,
                                                const v1::CreateArrayRequest& request) = 0;
  virtual absl::StatusOr<v1::Array> GetArray(const TenantId& tenant, const std::string& name) = 0;
  virtual absl::StatusOr<v1::ListArraysResponse> ListArrays(
      const TenantId& tenant, const v1::ListArraysRequest& request) = 0;
  virtual absl::Status DeleteArray(const TenantId& tenant, const std::string& name) = 0;
  virtual absl::StatusOr<std::unique_ptr<Upload>> BeginUpload(
      const TenantId& tenant, const v1::PutArrayRequest::Header& header, SteadyTime deadline) = 0;
  // Waits until the array is ready.
  virtual absl::StatusOr<std::unique_ptr<Download>> BeginDownload(
      const TenantId& tenant, const v1::FetchArrayRequest& request, SteadyTime deadline) = 0;

  // --- regions: memory shared with clients of this host ---
  // All but `socket_path`. Takes memory: up to a second a GiB.
  virtual absl::StatusOr<v1::CreateRegionResponse> CreateRegion(
      const TenantId& tenant, const v1::CreateRegionRequest& request) {
    return absl::UnimplementedError("regions");
  }
  virtual absl::Status DeleteRegion(const TenantId& tenant, const std::string& name) {
    return absl::UnimplementedError("regions");
  }
  // All but `socket_path`. Waits for the array.
  virtual absl::StatusOr<v1::MapArrayResponse> MapArray(const TenantId& tenant,
                                                        const v1::MapArrayRequest& request,
                                                        SteadyTime deadline) {
    return absl::UnimplementedError("mapped arrays");
  }
  // The region or array of a ticket, which is valid once and until it expires. Does not block.
  virtual absl::StatusOr<RedeemedRegion> RedeemRegion(std::string_view ticket) {
    return absl::UnimplementedError("regions");
  }
  // While a client holds a region, the end of its session or of the daemon leaves the bytes as they
  // are. Releasing an array's memory ends its loan. Neither blocks.
  virtual void HoldRegion(const std::string& name) {}
  // `connection` goes once that is done.
  virtual void LetGoOfRegion(const std::string& name,
                             std::shared_ptr<const void> connection = nullptr) {}
  // Of all regions.
  virtual int64_t region_bytes() { return 0; }

  // --- operations ---
  // Null: nothing is gained by a batch.
  virtual std::unique_ptr<SubmitBatch> BeginBatch(const TenantId& tenant) { return nullptr; }
  // `session` is `sessions/{id}` or empty when no handle is used. On error nothing was done, except
  // that the operation's new handles, where they are well-formed and free, now stand for that
  // error, as do the existing ones that it was to write in place, with all that share their memory
  // in the session. The work is cancelled at `deadline`.
  virtual absl::StatusOr<std::shared_ptr<OperationHandle>> Submit(const TenantId& tenant,
                                                                  const std::string& session,
                                                                  const v1::Operation& operation,
                                                                  SteadyTime deadline) = 0;
  // Marks an operation's handles with an error as Submit does, for one that is never submitted.
  virtual void Refuse(const TenantId& tenant, const std::string& session,
                      const v1::Operation& operation, const absl::Status& status) {}
  virtual absl::Status Release(const TenantId& tenant, const std::string& session,
                               const v1::Release& release) = 0;
  // Does not wait. SIZE_LIMIT above max_inline_bytes.
  virtual absl::StatusOr<std::unique_ptr<InlineFetch>> BeginFetch(const TenantId& tenant,
                                                                  const std::string& session,
                                                                  uint64_t handle) = 0;

  // --- jobs ---
  virtual absl::StatusOr<v1::Job> CreateJob(const TenantId& tenant,
                                            const v1::CreateJobRequest& request) = 0;
  virtual absl::StatusOr<v1::Job> GetJob(const TenantId& tenant, const std::string& name) = 0;
  virtual absl::StatusOr<v1::ListJobsResponse> ListJobs(const TenantId& tenant,
                                                        const v1::ListJobsRequest& request) = 0;
  virtual absl::StatusOr<v1::Job> CancelJob(const TenantId& tenant, const std::string& name) = 0;
  virtual absl::Status DeleteJob(const TenantId& tenant, const std::string& name) = 0;
  // Events after `after_sequence`, oldest first; blocks until there is one, `deadline`, or the job
  // is final and all was told (then an empty list).
  virtual absl::StatusOr<std::vector<v1::WatchJobResponse>> NextJobEvents(const TenantId& tenant,
                                                                          const std::string& name,
                                                                          uint64_t after_sequence,
                                                                          SteadyTime deadline) = 0;

  // --- modules ---
  virtual absl::StatusOr<v1::Module> CreateModule(const TenantId& tenant,
                                                  const v1::CreateModuleRequest& request,
                                                  SteadyTime deadline) = 0;
  virtual absl::StatusOr<v1::Module> GetModule(const TenantId& tenant, const std::string& name) = 0;
  virtual absl::StatusOr<v1::ListModulesResponse> ListModules(
      const TenantId& tenant, const v1::ListModulesRequest& request) = 0;
  virtual absl::Status DeleteModule(const TenantId& tenant, const std::string& name) = 0;

  // --- functions ---
  virtual absl::StatusOr<v1::Function> CreateFunction(const TenantId& tenant,
                                                      const v1::CreateFunctionRequest& request,
                                                      SteadyTime deadline) = 0;
  virtual absl::StatusOr<v1::Function> GetFunction(const TenantId& tenant,
                                                   const std::string& name) = 0;
  virtual absl::StatusOr<v1::ListFunctionsResponse> ListFunctions(
      const TenantId& tenant, const v1::ListFunctionsRequest& request) = 0;
  virtual absl::Status DeleteFunction(const TenantId& tenant, const std::string& name) = 0;

  // --- programs ---
  virtual absl::StatusOr<v1::CreateProgramResponse> CreateProgram(
      const TenantId& tenant, const v1::CreateProgramRequest& request) = 0;
  virtual absl::StatusOr<v1::Program> GetProgram(const TenantId& tenant,
                                                 const std::string& name) = 0;
  virtual absl::StatusOr<v1::ListProgramsResponse> ListPrograms(
      const TenantId& tenant, const v1::ListProgramsRequest& request) = 0;
  virtual absl::Status DeleteProgram(const TenantId& tenant, const std::string& name) = 0;

  // --- devices ---
  virtual std::vector<v1::Device> ListDevices() = 0;
  // The daemon's own account of each device (fields from `arena_bytes` on), in the order of
  // ListDevices. server/metrics adds what the hardware tells.
  virtual std::vector<v1::DeviceSample> SampleDevices() = 0;
  virtual SpillSample SampleSpill() { return {}; }

  // How many workers may run at once, on all devices together, as far as is known now.
  virtual int MostWorkers() { return 0; }

  // Until something is known of each device's health, or `deadline`.
  virtual void AwaitHealth(SteadyTime deadline) = 0;
  // The hardware of a device, `devices/{id}`, reports an error that only a reset can cure.
  virtual void DeviceBroke(const std::string& device, const std::string& why) = 0;
  // Whether a global transaction can begin and a thread is there to run what must wait, within this
  // time: of the daemon itself, whatever its devices do.
  virtual bool Responds(absl::Duration patience) = 0;
  // --- tenants ---
  // Quotas, rates and meters of all tenants.
  virtual session::TenantAccounts& accounts() = 0;
  virtual v1::Usage GetUsage(const TenantId& tenant) = 0;

  // Refuses new work with UNAVAILABLE (DRAINING) and waits until what was accepted has ended, or
  // `deadline`. True when all ended.
  virtual bool Drain(SteadyTime deadline) = 0;
  // What happens from here on is the end of this process, not news for the next one.
  virtual void StopRecording() {}
};

}  // namespace stride::scheduler
