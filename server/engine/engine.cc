#include "server/engine/engine.h"

#include <utility>

#include "absl/synchronization/notification.h"
#include "server/base/crash_point.h"
#include "server/base/environment.h"
#include "server/engine/arrays/array_persister.h"
#include "server/engine/arrays/arrays.h"
#include "server/engine/arrays/exports.h"
#include "server/engine/arrays/shared_memory.h"
#include "server/engine/core/core.h"
#include "server/engine/definitions/functions.h"
#include "server/engine/definitions/modules.h"
#include "server/engine/definitions/programs.h"
#include "server/engine/devices.h"
#include "server/engine/jobs/jobs.h"
#include "server/engine/jobs/session_end.h"
#include "server/engine/operations/operations.h"
#include "server/engine/persistence/journal_writer.h"
#include "server/engine/recovery.h"
#include "server/engine/scheduling/scheduler.h"
#include "server/engine/sessions.h"
#include "server/engine/tenants.h"
#include "server/engine/transfers/regions.h"

namespace stride::engine {
namespace {

class EngineImpl : public Engine {
 public:
  EngineImpl(EngineOptions options, broker::Broker* broker, fd_store::FdStore* fd_store,
             std::vector<NamedFd> kept, durable::DurableStore* store)
      : core_(options, broker),
        scheduler_(&core_),
        sessions_(&core_, &scheduler_),
        operations_(&core_, &scheduler_, FindModule(), &functions_, &programs_),
        devices_(&core_, &scheduler_),
        regions_(&core_),
        tenants_(&core_, &scheduler_, &regions_, &functions_, &modules_, &programs_),
        exports_(&core_, &scheduler_),
        shared_memory_(&regions_, &exports_),
        arrays_(&core_, &scheduler_, &operations_, &regions_),
        modules_(&core_, &scheduler_),
        functions_(&core_),
        programs_(&core_, &functions_, FindModule()),
        jobs_(&core_, &scheduler_, &operations_) {
    core_.accounts->room().Set([this](const TenantId& tenant) {
      core_.executor.Run([this, tenant] { jobs_.MakeRoom(tenant); });
    });
    operations_.SetReader(&arrays_);
    core_.catalogue.add_observer(&journal_writer_);
    core_.catalogue.add_observer(&programs_);
    core_.catalogue.add_observer(&regions_);
    if (store != nullptr)
      array_persister_ = std::make_unique<ArrayPersister>(&core_, &scheduler_, store);
    if (array_persister_ != nullptr) {
      core_.catalogue.add_observer(array_persister_.get());
      core_.array_persister = array_persister_.get();
      core_.durable_sink = array_persister_.get();
    }
    Recovery(
        {&core_, &scheduler_, &operations_, &arrays_, &modules_, &functions_, &programs_, &jobs_})
        .Run(fd_store, std::move(kept));
    if (array_persister_ != nullptr) array_persister_->Start();
    ScheduleHousekeeping();
    MeasureWorkers();
    GlobalTransaction transaction(core_);
    scheduler_.health().Start(transaction);
  }
  ~EngineImpl() override {
    core_.accounts->room().Set(nullptr);
    scheduler_.health().Stop();
    if (array_persister_ != nullptr) array_persister_->Stop();
    {
      GlobalTransaction transaction(core_);
      core_.ending = true;  // threads that wait evaluate their conditions
    }
    core_.Stop();
    // In no transaction: buffers that go now are no news for a successor, which still has them.
    core_.array_persister = nullptr;
    core_.durable_sink = nullptr;
    scheduler_.unfinished().Drop();
  }

  SessionService& sessions() override { return sessions_; }
  ArrayService& arrays() override { return arrays_; }
  RegionService& regions() override { return shared_memory_; }
  OperationService& operations() override { return operations_; }
  JobService& jobs() override { return jobs_; }
  ModuleService& modules() override { return modules_; }
  FunctionService& functions() override { return functions_; }
  ProgramService& programs() override { return programs_; }
  DeviceService& devices() override { return devices_; }
  TenantService& tenants() override { return tenants_; }
  session::TenantAccounts& accounts() override { return *core_.accounts; }

  bool Responds(absl::Duration patience) override;
  bool Drain(SteadyTime deadline) override;
  void StopRecording() override {
    if (array_persister_ != nullptr) array_persister_->Stop();
    GlobalTransaction transaction(core_);
    core_.journal_writer->Stop(transaction);
  }

 private:
  void ScheduleHousekeeping();
  // Measures the cost of workers again. The caller has no transaction.
  void MeasureWorkers();

  // The code of modules, for those made before `modules_`.
  Programs::FindModule FindModule() {
    return [this](TenantTransaction& transaction, const TenantId& tenant, const std::string& name) {
      return modules_.Find(transaction, tenant, name);
    };
  }

  Core core_;
  JournalWriter journal_writer_{&core_};
  Scheduler scheduler_;
  Sessions sessions_;
  Operations operations_;
  Devices devices_;
  Regions regions_;
  Tenants tenants_;
  Exports exports_;
  SharedMemory shared_memory_;
  Arrays arrays_;
  Modules modules_;
  Functions functions_;
  Programs programs_;
  Jobs jobs_;
  std::unique_ptr<ArrayPersister> array_persister_;  // null: nothing is kept on disk
};

bool EngineImpl::Responds(absl::Duration patience) {
  auto answered = std::make_shared<absl::Notification>();
  core_.executor.Run([this, answered] {
    { GlobalTransaction transaction(core_); }
    answered->Notify();
  });
  return Await(*answered, core_.Now() + patience);
}

bool EngineImpl::Drain(SteadyTime deadline) {
  bool ended = false;
  {
    GlobalTransaction transaction(core_);
    core_.draining = true;
    auto idle = [this] { return scheduler_.unfinished().Count() == 0; };
    ended = transaction.Await(absl::Condition(&idle), deadline);
  }
  if (array_persister_ != nullptr) array_persister_->Flush(deadline);
  return ended;
}

void EngineImpl::MeasureWorkers() {
  const Memory& arenas = scheduler_.memory().arenas();
  scheduler_.starter().Measure([&](GlobalTransaction& transaction, int place) {
    return WorkerStarter::PlaceUse{arenas.arena_bytes(transaction, place),
                                   arenas.used_bytes(transaction, place)};
  });
}

void EngineImpl::ScheduleHousekeeping() {
  core_.timer.At(core_.Now() + core_.options.housekeeping_interval, [this] {
    jobs_.Retire(core_.Now());
    MeasureWorkers();
    // One transaction for each partition: the work may take long and concerns no other.
    ForEachBit(core_.partitions.used(), [this](int partition) {
      TenantTransaction transaction(core_, partition);
      scheduler_.memory().arenas().Reclaim(transaction);
      core_.journal_writer->Trim(transaction, partition);
    });
    {
      GlobalTransaction transaction(core_);
      for (const auto& session : core_.catalogue.CloseExpiredSessions(transaction, core_.Now())) {
        core_.executor.Run([this, session] { EndSession(&core_, &scheduler_, *session); });
      }
      core_.catalogue.TakeExpiredArrays(transaction, core_.Now());
      arrays_.EndLeases(transaction, core_.Now());
      scheduler_.Housekeep(transaction);
    }
    ScheduleHousekeeping();
  });
}

}  // namespace

std::unique_ptr<Engine> Engine::Create(EngineOptions options, broker::Broker* broker,
                                       fd_store::FdStore* fd_store, std::vector<NamedFd> kept,
                                       durable::DurableStore* store) {
  return std::make_unique<EngineImpl>(std::move(options), broker, fd_store, std::move(kept), store);
}

}  // namespace stride::engine
