#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/ids.h"
#include "server/engine/core/health.h"

namespace stride::engine {

// A worker process that ended without a request to end.
struct WorkerLoss {
  std::string device;  // `devices/{id}`
  TenantId tenant;
  absl::Status cause;
  std::string operation;  // name of the kernel or function that was running; empty: none
};

// A job that has reached its final state, for the audit log.
struct JobEnd {
  TenantId tenant;
  std::string job;      // `tenants/{tenant}/jobs/{id}`
  std::string devices;  // on which its operations ran: `devices/{id}`, separated by commas
  double device_seconds = 0;
  int num_operations = 0;
  absl::Status outcome;
};

struct EngineOptions {
  int64_t max_array_bytes = int64_t{1} << 44;
  // Share of a device's memory that arrays may take.
  double device_memory_share = 0.9;
  int64_t max_device_memory_bytes = 0;  // upper bound for each device besides the share; 0: none
  // Destinations of arrays evicted from a full device: bytes of host memory, then bytes of files in
  // `spill_folder`, which PrepareSpillFolder has made. 0: no such destination.
  int64_t spill_memory_bytes = 0;
  int64_t spill_disk_bytes = 0;
  std::string spill_folder;
  // Memory shared with clients of this host, over all tenants. One tenant may have half of it
  // unless its quota says otherwise. 0: none.
  int64_t region_bytes = 0;
  // Defaults for a tenant whose quota does not set them. Requests beyond are refused.
  int64_t control_bytes = int64_t{1} << 30;
  int max_queued_tasks = 100000;
  int max_sessions = 10000;
  // Clients delete functions and programs, and seldom modules, whose names are their content.
  int max_functions = 1000;
  int max_programs = 1000;
  int max_modules = 10000;
  int64_t max_inline_bytes = 4 << 20;
  absl::Duration default_session_ttl = absl::Minutes(10);
  absl::Duration max_session_ttl = absl::Hours(24);
  // An incomplete upload without a call in progress is freed after this.
  absl::Duration upload_lease = absl::Minutes(2);
  absl::Duration job_retention = absl::Hours(24);
  absl::Duration worker_idle_timeout = absl::Minutes(5);
  // How long an upload waits for memory that others use, or keep taking first.
  absl::Duration memory_patience = absl::Seconds(5);
  // Unused memory stays with a tenant for this long after its last work on a device, for its next
  // arrays. Housekeeping finds expired memory; it also ends sessions, leases and idle workers.
  absl::Duration keep_empty_time = absl::Seconds(5);
  absl::Duration housekeeping_interval = absl::Seconds(1);
  // A running task that was cancelled or passed its deadline may run for this long before its
  // worker is killed.
  absl::Duration kill_grace = absl::Seconds(2);
  // Tenants that share a device alternate in slices of this much measured device time.
  absl::Duration fair_quantum = absl::Milliseconds(20);
  // At the end of a slice the next tenant waits this long for tasks in flight, then starts anyway.
  absl::Duration fair_hand_over = absl::Milliseconds(5);
  // A tenant's relative share of device time; above 0. Called often, in transactions; must
  // not block. Empty: the tenants' quotas decide.
  std::function<double(const TenantId&)> tenant_weight;
  // A device queue with work keeps its worker for at least this long when others wait for one.
  absl::Duration worker_turn = absl::Seconds(1);
  int max_starts = 4;  // workers that start at a time
  // Bounds on running workers, besides the memory of their devices. 0: not known.
  int max_workers = 0;            // as the process's descriptors allow
  int max_workers_of_device = 0;  // as the operator allows; 0: no bound
  int64_t host_memory_bytes = 0;  // for workers and for arrays on CPU devices
  int64_t max_processes = 0;      // processes and threads of the service
  // Bytes of a device's memory in use by all processes; absent: not known. Called each second,
  // without a lock. May be empty.
  std::function<std::optional<int64_t>(const std::string& device_id)> device_memory_used;
  // A session is admitted while more than `descriptor_reserve` descriptors are free.
  // `free_descriptors` is called in a transaction and must be quick. Empty: no bound.
  int64_t descriptor_reserve = 0;
  std::function<int64_t()> free_descriptors;
  HealthOptions health;
  // Called when a device starts or stops serving, with the reason; on an engine thread without a
  // lock; must not block. May be empty.
  std::function<void(const std::string& device, bool serves, const std::string& reason)>
      health_changed;
  // A device whose workers die during their start is abandoned for now after this.
  absl::Duration start_patience = absl::Seconds(10);
  // Called for each loss, on an engine thread without a lock; must not block. May be empty.
  std::function<void(const WorkerLoss&)> worker_lost;
  // Messages for the operator, about recovery and what ends it.
  std::function<void(const std::string&)> log = [](const std::string&) {};
  // Called for each job that ends, on an engine thread, possibly under a lock; must not block or
  // call the engine. May be empty.
  std::function<void(const JobEnd&)> job_ended;
};

}  // namespace stride::engine
