#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/base/ids.h"
#include "server/base/printed_text.h"
#include "server/base/steady_time.h"
#include "server/broker/broker.h"
#include "server/keeper/keeper.h"
#include "server/ops/operation_view.h"
#include "server/scheduler/health.h"
#include "server/session/array_description.h"
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

// A worker process that ended without being asked to.
struct WorkerLoss {
  std::string device;  // `devices/{id}`
  TenantId tenant;
  absl::Status cause;
  std::string operation;  // what it was running, as its kernel or function is named; empty: nothing
};

// A job that is final, for the audit log.
struct JobEnd {
  TenantId tenant;
  std::string job;      // `tenants/{tenant}/jobs/{id}`
  std::string devices;  // where its operations ran, `devices/{id}`, separated by commas
  double device_seconds = 0;
  int num_operations = 0;
  absl::Status outcome;
};

struct EngineOptions {
  int64_t max_array_bytes = int64_t{1} << 44;
  // Share of a device's memory that arrays may take.
  double device_memory_share = 0.9;
  int64_t max_device_memory_bytes = 0;  // and at most so much of each; 0: no bound of its own
  // Where idle arrays go when a device is full: bytes of host memory, then bytes of files in
  // `spill_folder`, which PrepareSpillFolder has made. 0: none.
  int64_t spill_memory_bytes = 0;
  int64_t spill_disk_bytes = 0;
  std::string spill_folder;
  // Memory shared with clients of this host, of all tenants together; one tenant may have half of
  // it where its quota says nothing else. 0: none.
  int64_t region_bytes = 0;
  // Of one tenant, where its quota says nothing else. More are refused.
  int64_t control_bytes = int64_t{1} << 30;
  int max_queued_tasks = 100000;
  int max_sessions = 10000;
  int64_t max_inline_bytes = 4 << 20;
  absl::Duration default_session_ttl = absl::Minutes(10);
  absl::Duration max_session_ttl = absl::Hours(24);
  absl::Duration upload_lease =
      absl::Minutes(2);  // an incomplete upload without a call is freed after this
  absl::Duration job_retention = absl::Hours(24);
  absl::Duration worker_idle_timeout = absl::Minutes(5);
  // Of an upload for memory that others use, or always take first.
  absl::Duration memory_patience = absl::Seconds(5);
  // Memory that nothing uses stays with a tenant this long after its last work on a device, for its
  // next arrays: others may need it. Found when the time is over by housekeeping, which also ends
  // sessions, leases and idle workers.
  absl::Duration keep_empty_time = absl::Seconds(5);
  absl::Duration housekeeping_interval = absl::Seconds(1);
  absl::Duration kill_grace =
      absl::Seconds(2);  // a running task that was cancelled or is past its deadline is let run
                         // this long before its worker is killed
  // Several tenants with work on one device take turns of this much measured device time.
  absl::Duration fair_quantum = absl::Milliseconds(20);
  // After a turn, what is in flight may take this long before the next tenant is let in all the
  // same.
  absl::Duration fair_hand_over = absl::Milliseconds(5);
  // Share of device time of a tenant, against others'; above 0. Asked for often, under the engine's
  // lock; must not block. Empty: the tenants' quotas tell.
  std::function<double(const TenantId&)> tenant_weight;
  // A worker that others wait for is kept at least so long by a lane that has work for it.
  absl::Duration worker_turn = absl::Seconds(1);
  int max_starts = 4;  // of workers, at a time
  // Bounds of the workers that run at once, besides the memory of their devices. 0: not known.
  int max_workers = 0;            // as the process's descriptors allow
  int max_workers_of_device = 0;  // as the operator allows; 0: no bound
  int64_t host_memory_bytes = 0;  // for workers and for arrays on CPU devices
  int64_t max_processes = 0;      // processes and threads of the service
  // Bytes of a device's memory that all processes have together; absent: not known. Asked each
  // second, without a lock. May be empty.
  std::function<std::optional<int64_t>(const std::string& device_id)> device_memory_used;
  // Descriptors: a session is admitted while more than `descriptor_reserve` are free.
  // `free_descriptors` is asked under the engine's lock and must be quick. Empty: no bound.
  int64_t descriptor_reserve = 0;
  std::function<int64_t()> free_descriptors;
  HealthOptions health;
  // Told when a device begins or ceases to serve, and then why; on an engine thread without a lock;
  // must not block. May be empty.
  std::function<void(const std::string& device, bool serves, const std::string& reason)>
      health_changed;
  // A device whose workers die while they start is given up for now after this long.
  absl::Duration start_patience = absl::Seconds(10);
  // Told of every loss, on an engine thread without a lock; must not block. May be empty.
  std::function<void(const WorkerLoss&)> worker_lost;
  // What a person should know: of recovery, and of what ends it.
  std::function<void(const std::string&)> log = [](const std::string&) {};
  // Told of every job's end, on an engine thread, perhaps under a lock; must not block or call the
  // engine. May be empty.
  std::function<void(const JobEnd&)> job_ended;
};

// What left the devices because they were full.
struct SpillSample {
  int64_t memory_bytes = 0;  // blocks in host memory
  int64_t memory_arena_bytes = 0;
  int64_t disk_bytes = 0;  // likewise in files
  int64_t disk_arena_bytes = 0;
  int64_t spilled_bytes = 0;   // copied off a device, or from memory to a file, so far
  int64_t returned_bytes = 0;  // brought back so far
  int64_t dropped_bytes = 0;   // copies given up, since there was another, so far
  int64_t looked_at = 0;       // buffers, to find those that leave, so far
};

// One operation that was accepted: a future. Thread-safe; may be dropped at any time without effect
// on the work.
class Ticket {
 public:
  virtual ~Ticket() = default;
  // Blocks until the operation ended or `deadline`; DEADLINE_EXCEEDED then says only that the wait
  // ended. OK when it succeeded, else its error.
  virtual absl::Status Wait(SteadyTime deadline) = 0;
  virtual bool done() const = 0;
  // Asks for its end: queued work never runs; its outputs carry CANCELLED.
  virtual void Cancel() = 0;
  // Calls back once, with what Wait returns, when it has ended (at once if it has), on an engine
  // thread; must not block. Needs no ticket any more.
  using Done = absl::AnyInvocable<void(const absl::Status&)>;
  virtual void OnDone(Done callback) = 0;
  // One for each output, known from acceptance on; state and error are those of this moment. `add`
  // makes room for each; it is called under the engine's lock and must not call the engine.
  virtual void Describe(absl::FunctionRef<v1::Array*()> add) const = 0;
  std::vector<v1::Array> Describe() const {
    std::vector<v1::Array> arrays;
    Describe([&arrays] { return &arrays.emplace_back(); });
    return arrays;
  }
  // In place of Describe, for one who tells of the outputs later: false, when there is more to tell
  // than that they are being made.
  virtual bool NotePending(session::PendingArrays* outputs) const { return false; }
  virtual v1::Timeline timeline() const = 0;
  // Bytes of an output, in C order; known from acceptance on. 0: there is no such output.
  virtual int64_t OutputBytes(int output) const = 0;
  // After success: all of the above in one look. For an output that is wanted its bytes too, if
  // they are few and lie where the daemon reads them at once; ReadInline has the others.
  struct Outcome {
    std::vector<v1::Array> arrays;  // one for each output
    v1::Timeline timeline;
    std::vector<std::optional<v1::InlineArray>> values;  // likewise
    PrintedText printed;                                 // of an operation without a session
  };
  virtual Outcome TakeOutcome(const std::vector<bool>& wanted) = 0;
  // After success, for an output that asked for inline_result: its bytes in C order. Blocks for the
  // download.
  virtual absl::StatusOr<v1::InlineArray> ReadInline(int output, SteadyTime deadline) = 0;
};

// One PutArray call in progress. One thread at a time. Dropped before Finish: the bytes so far stay
// (the range counts as far as it came) until the lease ends.
class Upload {
 public:
  virtual ~Upload() = default;
  virtual int64_t remaining() const = 0;
  // Appends bytes; blocks while staging is full (backpressure), no longer than the deadline given
  // at the start. SIZE_MISMATCH beyond the range.
  virtual absl::Status Write(std::string_view bytes) = 0;
  // Of a call with a region: appends the bytes at [offset, offset + size) of it. They may not
  // change until Finish has returned or this is dropped, which waits for what reads them.
  virtual absl::Status WriteShared(int64_t offset, int64_t size) {
    return absl::UnimplementedError("uploads from regions");
  }
  // SIZE_MISMATCH when bytes are missing. After OK they are in the array.
  virtual absl::StatusOr<v1::Array> Finish() = 0;
};

// One FetchArray call in progress. One thread at a time. The array cannot be overwritten meanwhile.
class Download {
 public:
  virtual ~Download() = default;
  virtual const v1::Array& array() const = 0;
  // Bytes that stay valid until `lease` is dropped (a staging slot or the arena's mapping): they
  // may be sent without a copy.
  struct Chunk {
    std::string_view bytes;
    std::shared_ptr<const void> lease;
  };
  // The next bytes, at most `max_bytes`; empty at the end. Several chunks may be held at once, but
  // not forever: slots are few.
  virtual absl::StatusOr<Chunk> Next(int64_t max_bytes) = 0;
  // Of a call with a region, in place of Next: puts the next bytes there and tells where. Size 0 at
  // the end. To drop this waits for what writes there.
  struct SharedChunk {
    int64_t offset = 0;
    int64_t size = 0;
  };
  virtual absl::StatusOr<SharedChunk> NextShared(int64_t max_bytes) {
    return absl::UnimplementedError("downloads into regions");
  }
};

// A region, or an array's memory, that a ticket was redeemed for. Its descriptor stays open as long
// as this lives.
struct RedeemedRegion {
  std::shared_ptr<const void> owner;
  int fd = -1;
  std::string name;
};

// A Fetch that was accepted: a read of the array as what was accepted before leaves it. What is
// accepted later and writes the array waits until this is dropped. One thread at a time.
class InlineFetch {
 public:
  virtual ~InlineFetch() = default;
  // Waits for the array and returns its bytes. After DEADLINE_EXCEEDED it may be called again.
  virtual absl::StatusOr<v1::InlineArray> Read(SteadyTime deadline) = 0;
};

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
  // While it lives, what its thread asks of the engine happens in one section of the engine's
  // locks, and what one worker is to do travels together: for some operations of a tenant that come
  // at once. Its thread then waits for nothing and asks for nothing but Submit (of no program),
  // Release, and OnDone, Describe and NotePending of tickets, all of that tenant. Null: nothing is
  // gained by it.
  class Together {
   public:
    virtual ~Together() = default;
  };
  virtual std::unique_ptr<Together> BeginTogether(const TenantId& tenant) { return nullptr; }
  // `session` is `sessions/{id}` or empty when no handle is used. On error nothing was done, except
  // that the operation's new handles, where they are well-formed and free, now stand for that
  // error, as do the existing ones that it was to write in place, with all that share their memory
  // in the session. The work is cancelled at `deadline`.
  virtual absl::StatusOr<std::shared_ptr<Ticket>> Submit(const TenantId& tenant,
                                                         const std::string& session,
                                                         const ops::OperationView& operation,
                                                         SteadyTime deadline) = 0;
  // Marks an operation's handles with an error as Submit does, for one that is never submitted.
  virtual void Refuse(const TenantId& tenant, const std::string& session,
                      const ops::OperationView& operation, const absl::Status& status) {}
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
  // Whether the lock can be had and a thread is there to run what must wait, within this time: of
  // the daemon itself, whatever its devices do.
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
