#pragma once

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "server/base/steady_time.h"
#include "server/broker/broker.h"
#include "server/engine/core/options.h"
#include "server/fd_store/fd_store.h"

namespace stride::durable {
class DurableStore;
}

namespace stride::session {
class TenantAccounts;
}

namespace stride::engine {

class ArrayService;
class DeviceService;
class FunctionService;
class JobService;
class ModuleService;
class OperationService;
class ProgramService;
class RegionService;
class SessionService;
class TenantService;

// Owns sessions, arrays, jobs, modules and the queues of all devices, and hands out one interface
// for each concept (server/scheduler/service). Thread-safe.
//
// Errors carry google.rpc details (server/base/error.h). Field paths are relative to the message
// passed in.
class Engine {
 public:
  // `broker` must outlive the engine and be Shutdown() before the engine is destroyed, because its
  // callbacks call the engine.
  //
  // With a FdStore that keeps, the engine resumes the state in `kept`, which is all that the
  // FdStore had, and accepted work outlives the process. The FdStore outlives the engine.
  //
  // With a store, named arrays and jobs are also kept on disk. The engine starts from the disk when
  // the FdStore had nothing. The store outlives the engine, which closes it.
  static std::unique_ptr<Engine> Create(EngineOptions options, broker::Broker* broker,
                                        fd_store::FdStore* fd_store = nullptr,
                                        std::vector<NamedFd> kept = {},
                                        durable::DurableStore* store = nullptr);
  virtual ~Engine() = default;

  // The interfaces live as long as the engine.
  virtual SessionService& sessions() = 0;
  virtual ArrayService& arrays() = 0;
  virtual RegionService& regions() = 0;
  virtual OperationService& operations() = 0;
  virtual JobService& jobs() = 0;
  virtual ModuleService& modules() = 0;
  virtual FunctionService& functions() = 0;
  virtual ProgramService& programs() = 0;
  virtual DeviceService& devices() = 0;
  virtual TenantService& tenants() = 0;
  // Quotas, rates and meters of all tenants.
  virtual session::TenantAccounts& accounts() = 0;

  // Returns whether all locks can be acquired and a thread is free for deferred work within
  // `patience`. The devices do not matter.
  virtual bool Responds(absl::Duration patience) = 0;
  // Refuses new work with UNAVAILABLE (DRAINING). Blocks until accepted work has ended or
  // `deadline`. True when all has ended.
  virtual bool Drain(SteadyTime deadline) = 0;
  // Ends recording: later changes belong to the end of this process and are not recovered.
  virtual void StopRecording() = 0;
};

}  // namespace stride::engine
