#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/ops/client_function.h"
#include "server/ops/inline_program.h"
#include "server/ops/program_plan.h"
#include "server/scheduler/core.h"
#include "server/scheduler/plan_cache.h"
#include "server/scheduler/replay.h"
#include "server/scheduler/service/program_service.h"

namespace stride::recovery {
class ProgramRecord;
}

namespace stride::scheduler {

class Functions;

// Programs that clients registered, by name, and their plans. Each tenant's are its own. One whose
// id begins with that of a session and a dot, and is made while there is that session, goes with
// it. Thread-safe, except where said.
class Programs : public ProgramService, public session::Catalogue::Observer {
 public:
  // Finds the code of a module by its resource name.
  using FindModule = std::function<absl::StatusOr<wire::Source>(TenantTransaction&, const TenantId&,
                                                                const std::string&)>;

  Programs(Core* core, const Functions* functions, FindModule find_module)
      : core_(core), functions_(functions), find_module_(std::move(find_module)) {}

  absl::StatusOr<v1::CreateProgramResponse> Create(
      const TenantId& tenant, const v1::CreateProgramRequest& request) override;
  absl::StatusOr<v1::Program> Get(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<v1::ListProgramsResponse> List(const TenantId& tenant,
                                                const v1::ListProgramsRequest& request) override;
  absl::Status Delete(const TenantId& tenant, const std::string& name) override;

  // --- for the catalogue ---
  void Added(GlobalTransaction&, session::Session&) override {}
  void Removed(GlobalTransaction& transaction, session::Session& session) override;
  void Added(TenantTransaction&, const std::shared_ptr<session::Array>&) override {}
  void Removed(TenantTransaction&, session::Array&) override {}

  // Restores a program that an earlier daemon had.
  void Restore(GlobalTransaction& transaction, uint64_t id, const recovery::ProgramRecord& record);
  // Restores a program from its row on disk.
  void RestoreFromDisk(GlobalTransaction& transaction, uint64_t row, const std::string& record);

  // The program as it runs for these inputs: made once for each kind of them. `program` has its
  // handles. `replay`: as one task, where it can be one.
  struct Ready {
    std::shared_ptr<const v1::Program> program;
    std::shared_ptr<const ops::ProgramPlan> plan;  // null: it has to be made, by MakePlan
    std::shared_ptr<Replay> replay;
    // The plan of each of the plan's steps, which has it no more, so that what is found out about
    // it serves every call. Null: it is planned when it runs.
    using Steps = std::vector<std::shared_ptr<const Planned>>;
    std::shared_ptr<const Steps> steps;
    // The bodies of each of the plan's steps; mostly none.
    std::shared_ptr<const std::vector<std::vector<Ready>>> bodies;
  };
  // The inputs of planning, copied so that it needs no transaction.
  struct Draft {
    std::shared_ptr<const v1::Program> program;
    std::vector<ArrayInfo> inputs;
    std::map<std::string, std::shared_ptr<const ops::ClientFunction>> functions;
    std::map<std::string, wire::Source> modules;  // code of its kernels
  };
  // Sets `draft` when there is no plan yet.
  absl::StatusOr<Ready> Find(TenantTransaction& transaction, const TenantId& tenant,
                             const std::string& name, const std::vector<ArrayInfo>& inputs,
                             Draft* draft);
  // Plans the program, which may take long. The caller has no transaction.
  absl::StatusOr<Ready> MakePlan(const Draft& draft);
  // Keeps the plan for later calls.
  void Keep(TenantTransaction& transaction, const TenantId& tenant, const std::string& name,
            const Draft& draft, const Ready& ready);

 private:
  using Key = std::pair<TenantId, std::string>;
  struct Entry {
    std::shared_ptr<const v1::Program> program;  // as its client gave it
    // Without calls of other programs: what is planned. The same where there are none.
    std::shared_ptr<const v1::Program> whole;
    std::map<std::string, Ready> plans;  // by the inputs' descriptions
    session::ControlCharge control;      // with its plans
    uint64_t record = 0;                 // id in the journal
    uint64_t durable = 0;                // its row on disk; 0: it is not kept there
    bool of_session = false;
  };
  absl::StatusOr<Ready> ReadyOf(const Draft& draft, ops::ProgramPlan plan);
  static recovery::ProgramRecord RecordOf(const Key& key, const Entry& entry);
  bool IsOfSession(TenantTransaction& transaction, const Key& key) const;
  absl::StatusOr<Draft> DraftOf(TenantTransaction& transaction, const TenantId& tenant,
                                std::shared_ptr<const v1::Program> program,
                                std::vector<ArrayInfo> inputs) const;
  // With the operations of the programs that it calls in the place of the calls.
  absl::StatusOr<std::shared_ptr<const v1::Program>> Inlined(
      TenantTransaction& transaction, const TenantId& tenant,
      const std::shared_ptr<const v1::Program>& program) const;
  absl::Status CheckRoom(TenantTransaction& transaction, const Key& key) const;
  void Save(TenantTransaction& transaction, const Key& key, const Entry& entry);

  Core* const core_;
  const Functions* const functions_;
  const FindModule find_module_;
  PerPartition<std::map<Key, Entry>> programs_;
};

}  // namespace stride::scheduler
