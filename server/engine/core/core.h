#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/base/bits.h"
#include "server/base/block_pool.h"
#include "server/base/environment.h"
#include "server/base/executor.h"
#include "server/base/timer.h"
#include "server/broker/broker.h"
#include "server/engine/core/options.h"
#include "server/engine/core/space_names.h"
#include "server/session/catalogue.h"
#include "server/session/tenant_accounts.h"
#include "server/store/buffer.h"
#include "server/tenant/device_account.h"
#include "server/tenant/partitions.h"
#include "server/tenant/transaction.h"

namespace stride::engine {

inline identity::Quota DefaultQuota(const EngineOptions& options) {
  return {.control_bytes = options.control_bytes,
          .operations = options.max_queued_tasks,
          .sessions = options.max_sessions,
          .functions = options.max_functions,
          .modules = options.max_modules,
          .programs = options.max_programs,
          .region_bytes = options.region_bytes / 2};
}

inline std::vector<std::string> DeviceIds(const broker::Broker& broker) {
  std::vector<std::string> ids;
  for (const wire::DeviceDescription& device : broker.devices()) ids.push_back(device.id());
  return ids;
}

class ArrayPersister;
class JournalWriter;
class DurableSink;

inline wire::DeviceDescription DescribePlace(const char* id, int64_t bytes, bool host_memory) {
  wire::DeviceDescription place;
  place.set_id(id);
  place.set_memory_bytes(bytes);
  place.set_host_memory(host_memory);
  place.set_arena_granularity_bytes(4096);
  return place;
}

// State that all parts of the engine share, guarded by transactions: a tenant's state by the
// tenant's own (transaction.h). State of no tenant changes in global transactions, or has a lock of
// its own (docs/architecture.md, "Transactions").
struct Core {
  Core(EngineOptions options, broker::Broker* broker);

  const EngineOptions options;
  broker::Broker* const broker;
  const wire::DeviceDescription memory_description, disk_description;
  const SpaceNames spaces;
  // Shared, since buffers may outlive the engine.
  const std::shared_ptr<session::TenantAccounts> accounts =
      std::make_shared<session::TenantAccounts>(DefaultQuota(options), DeviceIds(*broker));
  const std::shared_ptr<store::Reclaimer> reclaimer = std::make_shared<store::Reclaimer>(
      [accounts = accounts](const TenantId& tenant, int64_t bytes, int64_t control_bytes) {
        accounts->AddArrayBytes(tenant, bytes, control_bytes);
      });

  TenantPartitions partitions;  // their locks

  // Accounts of devices and of the two other places, by index.
  std::vector<DeviceAccount> device_accounts =
      std::vector<DeviceAccount>(broker->devices().size() + 2);

  session::Catalogue catalogue{accounts};
  bool draining = false;
  bool ending = false;  // waits for workers, memory and pieces are over; set once
  JournalWriter* journal_writer = nullptr;    // its constructor sets it
  ArrayPersister* array_persister = nullptr;  // null: nothing is kept on disk
  DurableSink* durable_sink = nullptr;        // the same, for tasks and definitions

  // Does a transaction's work list. The scheduler sets it.
  std::function<void(TenantTransaction&)> settle;

  Timer timer;
  Executor executor{64};  // moves and callbacks, which may wait for what starter does
  Executor starter{16};   // workers and arenas: waits for nothing else of ours
  Executor streams{64};   // operations in pieces, which wait for all of these
  Executor turns{16};     // queues whose turn has begun: waits for their tenants' partitions alone

  // No function of the timer or the executor runs afterwards. No transaction may be open.
  void Stop() {
    timer.Stop();
    streams.Stop();
    executor.Stop();
    starter.Stop();
    turns.Stop();
  }

  // Two more places hold buffers in arenas, as devices do: host memory and files. Their indices
  // follow the devices' indices. No task runs there.
  int memory_place() const { return static_cast<int>(broker->devices().size()); }
  int disk_place() const { return memory_place() + 1; }
  int num_places() const { return disk_place() + 1; }
  bool IsDevice(int place) const { return place < memory_place(); }
  const wire::DeviceDescription& MemorySpace(int place) const {
    if (place == memory_place()) return memory_description;
    if (place == disk_place()) return disk_description;
    return broker->devices()[place];
  }

  SteadyTime Now() const { return stride::Now(); }
};

}  // namespace stride::engine
