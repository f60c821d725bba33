#include "server/scheduler/engine.h"

#include <utility>

#include "absl/synchronization/notification.h"
#include "server/base/crash_point.h"
#include "server/base/surroundings.h"
#include "server/scheduler/arrays.h"
#include "server/scheduler/core.h"
#include "server/scheduler/devices.h"
#include "server/scheduler/durability.h"
#include "server/scheduler/exports.h"
#include "server/scheduler/functions.h"
#include "server/scheduler/jobs.h"
#include "server/scheduler/modules.h"
#include "server/scheduler/operations.h"
#include "server/scheduler/programs.h"
#include "server/scheduler/recorder.h"
#include "server/scheduler/recovery.h"
#include "server/scheduler/regions.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/session_end.h"
#include "server/scheduler/sessions.h"
#include "server/scheduler/shared_memory.h"
#include "server/scheduler/tenants.h"

namespace stride::scheduler {
namespace {

class EngineImpl : public Engine {
 public:
  EngineImpl(EngineOptions options, broker::Broker* broker, keeper::Keeper* keeper,
             std::vector<NamedFd> kept, durable::DurableStore* store)
      : core_(options, broker),
        scheduler_(&core_),
        sessions_(&core_, &scheduler_),
        operations_(&core_, &scheduler_, FindModule(), &functions_, &programs_),
        devices_(&core_, &scheduler_, &operations_),
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
    core_.catalogue.add_observer(&recorder_);
    core_.catalogue.add_observer(&programs_);
    core_.catalogue.add_observer(&regions_);
    if (store != nullptr) durability_ = std::make_unique<Durability>(&core_, &scheduler_, store);
    if (durability_ != nullptr) {
      core_.catalogue.add_observer(durability_.get());
      core_.durability = durability_.get();
      core_.durable_sink = durability_.get();
    }
    Recovery(
        {&core_, &scheduler_, &operations_, &arrays_, &modules_, &functions_, &programs_, &jobs_})
        .Run(keeper, std::move(kept));
    if (durability_ != nullptr) durability_->Start();
    ScheduleHousekeeping();
    scheduler_.MeasureWorkers();
    GlobalTransaction transaction(core_);
    scheduler_.health().Start(transaction);
  }
  ~EngineImpl() override {
    core_.accounts->room().Set(nullptr);
    scheduler_.health().Stop();
    if (durability_ != nullptr) durability_->Stop();
    {
      GlobalTransaction transaction(core_);
      scheduler_.BeginEnd(transaction);
    }
    core_.Stop();
    // In no transaction: buffers that go now are no news for a successor, which still has them.
    core_.durability = nullptr;
    core_.durable_sink = nullptr;
    scheduler_.DropUnfinished();
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
    if (durability_ != nullptr) durability_->Stop();
    GlobalTransaction transaction(core_);
    core_.recorder->Stop(transaction);
  }

 private:
  void ScheduleHousekeeping();

  // The code of modules, for those made before `modules_`.
  Programs::FindModule FindModule() {
    return [this](TenantTransaction& transaction, const TenantId& tenant, const std::string& name) {
      return modules_.Find(transaction, tenant, name);
    };
  }

  Core core_;
  Recorder recorder_{&core_};
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
  std::unique_ptr<Durability> durability_;  // null: nothing is kept on disk
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
    auto idle = [this] { return scheduler_.num_unfinished() == 0; };
    ended = transaction.Await(absl::Condition(&idle), deadline);
  }
  if (durability_ != nullptr) durability_->Flush(deadline);
  return ended;
}

void EngineImpl::ScheduleHousekeeping() {
  core_.timer.At(core_.Now() + core_.options.housekeeping_interval, [this] {
    jobs_.Retire(core_.Now());
    scheduler_.MeasureWorkers();
    // One transaction for each partition: the work may take long and concerns no other.
    ForEachBit(core_.partitions.used(), [this](int partition) {
      TenantTransaction transaction(core_, partition);
      scheduler_.memory().arenas().Reclaim(transaction);
      core_.recorder->Trim(transaction, partition);
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
                                       keeper::Keeper* keeper, std::vector<NamedFd> kept,
                                       durable::DurableStore* store) {
  return std::make_unique<EngineImpl>(std::move(options), broker, keeper, std::move(kept), store);
}

}  // namespace stride::scheduler
