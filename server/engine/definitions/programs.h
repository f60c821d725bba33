#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/core/core.h"
#include "server/engine/core/plan_cache.h"
#include "server/engine/core/program_launch.h"
#include "server/engine/persistence/resource_table.h"
#include "server/engine/service/program_service.h"
#include "server/ops/client_function.h"
#include "server/ops/inline_program.h"
#include "server/ops/program_plan.h"

namespace stride::recovery {
class ProgramRecord;
}

namespace stride::engine {

class Functions;

// A program as it runs for inputs of one kind; made once for each kind. `program` has its handles.
// `program_launch`: the program as one task, where it can be one.
struct PlannedProgram {
  std::shared_ptr<const v1::Program> program;
  std::shared_ptr<const ops::ProgramPlan> plan;  // null: it has to be made, by MakePlan
  std::shared_ptr<ProgramLaunch> program_launch;
  // The plan of each of the plan's steps, which has it no more, so that what is found out about
  // it serves every call. Null: it is planned when it runs.
  using Steps = std::vector<std::shared_ptr<const Planned>>;
  std::shared_ptr<const Steps> steps;
  // The bodies of each of the plan's steps; mostly none.
  std::shared_ptr<const std::vector<std::vector<PlannedProgram>>> bodies;
};
// The inputs of planning, copied so that it needs no transaction.
struct ProgramRequest {
  std::shared_ptr<const v1::Program> program;
  std::vector<ArrayInfo> inputs;
  std::map<std::string, std::shared_ptr<const ops::ClientFunction>> functions;
  std::map<std::string, wire::Source> modules;  // code of its kernels
};

// Programs that clients registered, by name, and their plans. Each tenant's are its own. One whose
// id begins with that of a session and a dot, and is made while there is that session, goes with
// it. Thread-safe, except where said.
class Programs : public ProgramService, public session::Catalogue::Observer {
 public:
  // Finds the code of a module by its resource name.
  using FindModule = std::function<absl::StatusOr<wire::Source>(TenantTransaction&, const TenantId&,
                                                                const std::string&)>;

  Programs(Core* core, const Functions* functions, FindModule find_module);

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

  int64_t Count(TenantTransaction& transaction, const TenantId& tenant) const {
    return table_.Count(transaction, tenant);
  }

  // Restores a program that an earlier daemon had.
  void Restore(GlobalTransaction& transaction, uint64_t id, const recovery::ProgramRecord& record);

  // Sets `request` when there is no plan yet.
  absl::StatusOr<PlannedProgram> Find(TenantTransaction& transaction, const TenantId& tenant,
                                      const std::string& name, const std::vector<ArrayInfo>& inputs,
                                      ProgramRequest* request);
  // Plans the program, which may take long. The caller has no transaction.
  absl::StatusOr<PlannedProgram> MakePlan(const ProgramRequest& request);
  // Keeps the plan for later calls.
  void Keep(TenantTransaction& transaction, const TenantId& tenant, const std::string& name,
            const ProgramRequest& request, const PlannedProgram& ready);

 private:
  struct Value {
    using Message = v1::Program;
    using Record = recovery::ProgramRecord;
    std::shared_ptr<const v1::Program> message;  // as its client gave it
    // Without calls of other programs: what is planned. The same where there are none.
    std::shared_ptr<const v1::Program> whole;
    std::map<std::string, PlannedProgram> plans;  // by the inputs' descriptions
    bool of_session = false;
    int64_t Cost() const;
    bool is_kept() const { return !of_session; }
    void WriteTo(Record* record) const;
  };
  std::optional<Value> ReadRecord(GlobalTransaction& transaction,
                                  const recovery::ProgramRecord& record) const;
  absl::StatusOr<PlannedProgram> WithSteps(const ProgramRequest& request, ops::ProgramPlan plan);
  bool IsOfSession(TenantTransaction& transaction, const TenantId& tenant,
                   const std::string& id) const;
  absl::StatusOr<ProgramRequest> RequestOf(TenantTransaction& transaction, const TenantId& tenant,
                                           std::shared_ptr<const v1::Program> program,
                                           std::vector<ArrayInfo> inputs) const;
  // With the operations of the programs that it calls in the place of the calls.
  absl::StatusOr<std::shared_ptr<const v1::Program>> Inlined(
      TenantTransaction& transaction, const TenantId& tenant,
      const std::shared_ptr<const v1::Program>& program) const;

  Core* const core_;
  const Functions* const functions_;
  const FindModule find_module_;
  ResourceTable<Value> table_;
};

}  // namespace stride::engine
