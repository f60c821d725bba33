#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/core/plan_cache.h"
#include "server/engine/definitions/functions.h"
#include "server/engine/definitions/programs.h"
#include "server/engine/operations/array_reader.h"
#include "server/engine/operations/resolved_operation.h"
#include "server/engine/scheduling/scheduler.h"
#include "server/engine/service/operation_service.h"
#include "server/ops/operation_view.h"
#include "server/ops/sharding.h"
#include "server/session/array.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/operation.pb.h"

namespace stride::engine {

// Turns a client's operation into arrays and a task: resolves operands, plans, makes the outputs,
// enqueues. Thread-safe.
class Operations : public OperationService {
 public:
  using FindModule = Programs::FindModule;

  Operations(Core* core, Scheduler* scheduler, FindModule find_module, const Functions* functions,
             Programs* programs)
      : core_(core),
        scheduler_(scheduler),
        find_module_(std::move(find_module)),
        functions_(functions),
        programs_(programs) {}

  struct Accepted {
    std::shared_ptr<Task> task;  // null: a view, nothing runs; the last of several
    // What else runs on behalf of the operation: copies of operands and into results.
    std::vector<std::shared_ptr<Task>> helpers;
    session::ArrayList outputs;
    // The operation has ended when all of these have, not the task alone.
    bool waits_for_helpers = false;
  };
  using Extras = OperationExtras;
  // As Submit, for callers in the engine.
  absl::StatusOr<Accepted> Accept(const TenantId& tenant, const std::string& session,
                                  const ops::OperationView& operation, SteadyTime deadline,
                                  Extras extras = {});
  // The same in a transaction of the caller. The operation is no program call, and the transaction
  // is global if NeedsGlobal.
  absl::StatusOr<Accepted> Accept(TenantTransaction& transaction, const TenantId& tenant,
                                  const std::string& session, const ops::OperationView& operation,
                                  SteadyTime deadline, Extras extras = {});
  // Whether it changes more than its tenant's state: job accounts and array names.
  static bool NeedsGlobal(const ops::OutputList& outputs, const Extras& extras);

  // --- OperationService ---
  std::unique_ptr<SubmitBatch> BeginSubmitBatch(const TenantId& tenant) override;
  bool MayBatch(const v1::Operation& operation) const override;
  absl::StatusOr<std::shared_ptr<OperationHandle>> Submit(const TenantId& tenant,
                                                          const std::string& session,
                                                          const ops::OperationView& operation,
                                                          SteadyTime deadline) override;
  void Refuse(const TenantId& tenant, const std::string& session,
              const ops::OperationView& operation, const absl::Status& status) override;
  absl::Status Release(const TenantId& tenant, const std::string& session,
                       const v1::Release& release) override;

  // The same in a transaction of the caller.
  void Refuse(TenantTransaction& transaction, const TenantId& tenant, const std::string& session,
              const ops::OperationView& operation, const absl::Status& status);
  absl::Status Release(TenantTransaction& transaction, const TenantId& tenant,
                       const std::string& session, const v1::Release& release);

  // Must be called before any operation. Reads results and the conditions of loops. The reader must
  // outlive this.
  void SetReader(ArrayReader* reader) { reader_ = reader; }

  // Tasks get ids from here on.
  void ResumeIdsAt(uint64_t next_task) { next_task_ = next_task; }

  // The devices and the axis that a client asks for; `field` is the message's path.
  absl::StatusOr<ops::Spread> ReadSharding(const v1::Sharding& sharding, size_t rank,
                                           const std::string& field) const;
  // An array in one piece of the same content, on the device, or a copy on another.
  absl::StatusOr<std::shared_ptr<session::Array>> CopyTo(
      TenantTransaction& transaction, const TenantId& tenant,
      const std::shared_ptr<session::Array>& array, int device);

  // UNIMPLEMENTED for a spread array of a name that is to be kept on disk.
  absl::Status CheckKept(const std::shared_ptr<session::Array>& array,
                         const session::ArrayName& name) const;

  // A contiguous copy of a view, so that its bytes can be read in order.
  absl::StatusOr<std::shared_ptr<session::Array>> MakeContiguous(
      TenantTransaction& transaction, const TenantId& tenant,
      const std::shared_ptr<session::Array>& array);

 private:
  using Resolved = ResolvedOperation;
  Resolved ResolvedFor(Extras extras, TaskList* launched) const;
  absl::StatusOr<Accepted> SubmitProgram(const TenantId& tenant, const std::string& session,
                                         const ops::OperationView& operation, SteadyTime deadline,
                                         Extras extras);
  // Ends Submit: returns what was accepted, or undoes what was launched.
  absl::StatusOr<Accepted> Conclude(TenantTransaction& transaction, const TenantId& tenant,
                                    const std::string& session, const ops::OperationView& operation,
                                    absl::StatusOr<Accepted> accepted, TaskList launched);
  // `known`: the operation's plan for these inputs and outputs; null: not known yet.
  absl::StatusOr<Accepted> Launch(TenantTransaction& transaction, const TenantId& tenant,
                                  const ops::OperationView& operation, SteadyTime deadline,
                                  Resolved& resolved,
                                  std::shared_ptr<const Planned> known = nullptr);
  // From the cache, or made.
  absl::StatusOr<std::shared_ptr<const Planned>> PlanFor(
      TenantTransaction& transaction, const TenantId& tenant, const ops::OperationView& operation,
      absl::Span<const ArrayInfo* const> inputs, absl::Span<const ArrayInfo* const> existing);
  // launch_program.cc: as one task where it can be one, or every step, in order.
  absl::StatusOr<Accepted> LaunchProgram(TenantTransaction& transaction, const TenantId& tenant,
                                         const PlannedProgram& ready, const std::string& label,
                                         SteadyTime deadline, const Resolved& resolved);
  // Neither copies into existing arrays.
  absl::StatusOr<Accepted> LaunchSteps(TenantTransaction& transaction, const TenantId& tenant,
                                       const PlannedProgram& ready, SteadyTime deadline,
                                       const Resolved& resolved);
  absl::StatusOr<Accepted> LaunchAsOneTask(TenantTransaction& transaction, const TenantId& tenant,
                                           const std::shared_ptr<ProgramLaunch>& program_launch,
                                           const std::string& label, SteadyTime deadline,
                                           const Resolved& resolved);
  // bodies.cc: one task that submits the bodies of a loop or a branch when it has its turn.
  class BodyRunner;
  absl::StatusOr<Accepted> LaunchBodies(TenantTransaction& transaction, const TenantId& tenant,
                                        const ops::ProgramStep& step,
                                        const std::vector<PlannedProgram>& bodies,
                                        SteadyTime deadline, Resolved& resolved);
  // Whether some device has the memory for it, with all arrays at once.
  bool FitsADevice(const ProgramLaunch& program_launch, const Resolved& resolved) const;
  absl::StatusOr<PlannedProgram> FindProgram(TenantTransaction& transaction, const TenantId& tenant,
                                             const v1::ProgramCall& call, const Resolved& resolved,
                                             ProgramRequest* request);
  std::shared_ptr<Task> NewTask(const TenantId& tenant, std::string label, SteadyTime deadline,
                                const Resolved& resolved,
                                std::shared_ptr<const Planned> planned = NoPlan());
  // Publishes the outputs and lets the task go its way.
  absl::Status Begin(TenantTransaction& transaction, const TenantId& tenant,
                     const std::shared_ptr<Task>& task, Resolved& resolved);
  absl::StatusOr<Accepted> LaunchThroughTemporary(TenantTransaction& transaction,
                                                  const TenantId& tenant,
                                                  const ops::OperationView& operation,
                                                  SteadyTime deadline, Resolved& resolved);
  // With copies of inputs in other types in their place.
  absl::StatusOr<Accepted> LaunchConverted(TenantTransaction& transaction, const TenantId& tenant,
                                           const ops::OperationView& operation, SteadyTime deadline,
                                           const Resolved& resolved,
                                           const std::vector<std::optional<DType>>& types);
  // A contiguous copy without a name, on behalf of the operation `around` it.
  absl::StatusOr<Accepted> LaunchCopy(TenantTransaction& transaction, const TenantId& tenant,
                                      const std::shared_ptr<session::Array>& array,
                                      std::optional<DType> type, SteadyTime deadline,
                                      const Resolved& around);
  // sharded_launch.cc: of operations over arrays that are spread over devices.
  class PartLauncher;
  static bool IsSharded(const Resolved& resolved);
  absl::StatusOr<Accepted> LaunchSharded(TenantTransaction& transaction, const TenantId& tenant,
                                         const ops::OperationView& operation, SteadyTime deadline,
                                         Resolved& resolved);
  absl::StatusOr<Accepted> LaunchMove(TenantTransaction& transaction, const TenantId& tenant,
                                      const ops::OperationView& operation, SteadyTime deadline,
                                      Resolved& resolved);
  absl::Status PrepareKernel(TenantTransaction& transaction, const TenantId& tenant,
                             const ops::OperationView& operation, Task* task);

  Core* const core_;
  Scheduler* const scheduler_;
  const FindModule find_module_;
  const Functions* const functions_;
  Programs* const programs_;
  ArrayReader* reader_ = nullptr;
  std::atomic<uint64_t> next_task_{1};
  PerPartition<PlanCache> plans_;
};

}  // namespace stride::engine
