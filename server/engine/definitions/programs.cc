#include "server/engine/definitions/programs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/base/error.h"
#include "server/durable/rows.h"
#include "server/engine/definitions/functions.h"
#include "server/engine/definitions/module_code.h"
#include "server/engine/persistence/answer.h"
#include "server/engine/persistence/describe.h"
#include "server/engine/persistence/journal_writer.h"
#include "server/ops/shape.h"
#include "server/recovery/records.pb.h"
#include "server/session/control_cost.h"

namespace stride::engine {
namespace {

constexpr ResourceKind kPrograms{
    .noun = "program", .collection = "programs", .not_found = v1::ERROR_REASON_PROGRAM_NOT_FOUND};
constexpr size_t kMaxProgramBytes = 1 << 20;
// Plans of one program. A client with more shapes than this plans again now and then.
constexpr size_t kMaxPlans = 32;

// The fields that lists leave out. A program is small enough for any other answer.
const OmittedFields& OmittedInProgramLists() {
  static const OmittedFields kLeftOut({"operations"});
  return kLeftOut;
}

// As it was given and, where it calls others, with these in the place of the calls.
int64_t CostOf(const v1::Program& program, const v1::Program& whole) {
  return session::kProgramControlBytes + session::ControlBytesOf(program) +
         (&whole != &program ? session::ControlBytesOf(whole) : 0);
}

// A plan of it, for one kind of inputs.
int64_t PlanCostOf(const v1::Program& whole) {
  return ops::NumOperations(whole) * session::kPlannedOperationControlBytes +
         3 * static_cast<int64_t>(whole.ByteSizeLong());
}

// The key of a plan: the layouts of its inputs.
std::string KindOf(const std::vector<ArrayInfo>& inputs) {
  return absl::StrJoin(inputs, ";", [](std::string* out, const ArrayInfo& input) {
    absl::StrAppend(out, static_cast<int>(input.dtype), ":", absl::StrJoin(input.shape, ","), ":",
                    absl::StrJoin(input.strides, ","), ":", input.offset);
  });
}

absl::StatusOr<std::vector<ArrayInfo>> DeclaredInputs(const v1::Program& program) {
  std::vector<ArrayInfo> inputs;
  for (int i = 0; i < program.inputs_size(); ++i) {
    auto info = ops::ReadSpec(program.inputs(i).spec(), absl::StrCat("inputs[", i, "].spec"));
    if (!info.ok()) return info.status();
    inputs.push_back(*std::move(info));
  }
  return inputs;
}

bool DeclaresInputs(const v1::Program& program) {
  return program.inputs_size() == 0 || program.inputs(0).has_spec();
}

// Describes the results of a call with the declared inputs.
void Describe(const PlannedProgram& ready, v1::CreateProgramResponse* response) {
  for (const ArrayInfo& output : ready.plan->outputs) {
    v1::ArraySpec* spec = response->add_results();
    spec->set_data_type(static_cast<v1::DataType>(output.dtype));
    spec->mutable_shape()->Assign(output.shape.begin(), output.shape.end());
  }
  response->set_num_tasks(static_cast<int>(
      ready.program_launch != nullptr
          ? 1
          : std::count_if(ready.steps->begin(), ready.steps->end(), [](const auto& planned) {
              return planned == nullptr || !planned->plan.is_view;
            })));
}

}  // namespace

Programs::Programs(Core* core, const Functions* functions, FindModule find_module)
    : core_(core),
      functions_(functions),
      find_module_(std::move(find_module)),
      table_(core, kPrograms, &identity::Quota::programs, recovery::Kind::kProgram,
             durable::DefinitionRow::kProgram,
             [this](GlobalTransaction& transaction, const recovery::ProgramRecord& record) {
               return ReadRecord(transaction, record);
             }) {}

int64_t Programs::Value::Cost() const {
  return CostOf(*message, *whole) + static_cast<int64_t>(plans.size()) * PlanCostOf(*whole);
}

void Programs::Value::WriteTo(recovery::ProgramRecord* record) const {
  message->SerializeToString(record->mutable_program());
  if (whole != message) whole->SerializeToString(record->mutable_whole());
}

std::optional<Programs::Value> Programs::ReadRecord(GlobalTransaction& transaction,
                                                    const recovery::ProgramRecord& record) const {
  v1::Program program, whole;
  const bool calls = !record.whole().empty();
  if (!program.ParseFromString(record.program()) || !ops::CheckProgram(program).ok() ||
      !whole.ParseFromString(calls ? record.whole() : record.program()))
    return std::nullopt;
  Value value{.message = std::make_shared<const v1::Program>(std::move(program))};
  value.whole = calls ? std::make_shared<const v1::Program>(std::move(whole)) : value.message;
  value.of_session = IsOfSession(transaction, TenantId{record.tenant()}, record.id());
  return value;
}

absl::StatusOr<v1::CreateProgramResponse> Programs::Create(
    const TenantId& tenant, const v1::CreateProgramRequest& request) {
  if (absl::Status status = kPrograms.CheckParent(request.parent(), tenant); !status.ok())
    return status;
  if (absl::Status status = kPrograms.CheckId(request.program_id()); !status.ok()) return status;
  if (request.program().ByteSizeLong() > kMaxProgramBytes) {
    return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, "program",
                        absl::StrCat("at most ", kMaxProgramBytes, " bytes, not ",
                                     request.program().ByteSizeLong()));
  }
  absl::Status checked = ops::CheckProgram(request.program());
  if (!checked.ok()) return PrefixField(checked, "program.");
  auto inputs = std::vector<ArrayInfo>();
  if (DeclaresInputs(request.program())) {
    auto declared = DeclaredInputs(request.program());
    if (!declared.ok()) return PrefixField(declared.status(), "program.");
    inputs = *std::move(declared);
  }
  v1::Program given = request.program();
  given.clear_omitted();
  given.set_name(kPrograms.NameOf(tenant, request.program_id()));
  SetTimestamp(core_->Now(), given.mutable_create_time());
  Value value{.message = std::make_shared<const v1::Program>(std::move(given))};
  // Another call that makes this program plans for a moment, without a wait.
  auto reservation =
      table_.Reserve(tenant, request.program_id(), CostOf(*value.message, *value.message),
                     SteadyTime::InfiniteFuture());
  if (!reservation.ok()) return reservation.status();
  absl::StatusOr<ProgramRequest> to_plan = ProgramRequest{};
  {
    TenantTransaction transaction(*core_, tenant);
    auto whole = Inlined(transaction, tenant, value.message);
    if (!whole.ok()) return PrefixField(whole.status(), "program.");
    value.whole = *std::move(whole);
    int64_t cost = CostOf(*value.message, *value.whole);
    if (DeclaresInputs(request.program())) cost += PlanCostOf(*value.whole);
    session::ControlCharge& control = reservation->control();
    if (absl::Status status = control.Grow(cost - control.bytes()); !status.ok()) return status;
    to_plan = RequestOf(transaction, tenant, value.whole, std::move(inputs));
    if (!to_plan.ok()) return PrefixField(to_plan.status(), "program.");
  }
  v1::CreateProgramResponse response;
  if (DeclaresInputs(request.program())) {
    auto ready = MakePlan(*to_plan);
    if (!ready.ok()) return PrefixField(ready.status(), "program.");
    Describe(*ready, &response);
    const size_t bytes = response.ByteSizeLong() + value.message->ByteSizeLong();
    if (bytes > kMaxAnswerBytes) {
      return InvalidField(
          v1::ERROR_REASON_SIZE_LIMIT, "program.outputs",
          absl::StrCat("the description of the results does not fit an answer. Bytes: ", bytes,
                       ", limit: ", kMaxAnswerBytes, "; declare no inputs, or fewer results"));
    }
    value.plans[KindOf(to_plan->inputs)] = *std::move(ready);
  }
  *response.mutable_program() = *value.message;
  table_.Add(*std::move(reservation), std::move(value),
             [&](TenantTransaction& transaction, Value& made) {
               made.of_session = IsOfSession(transaction, tenant, request.program_id());
             });
  return response;
}

absl::StatusOr<std::shared_ptr<const v1::Program>> Programs::Inlined(
    TenantTransaction& transaction, const TenantId& tenant,
    const std::shared_ptr<const v1::Program>& program) const {
  if (!ops::CallsPrograms(*program)) return program;
  auto find = [&](const std::string& name) -> absl::StatusOr<const v1::Program*> {
    const auto id = kPrograms.IdOf(name, tenant, "program_call.program");
    if (!id.ok()) return id.status();
    const auto* entry = table_.Find(transaction, tenant, *id);
    if (entry == nullptr) return kPrograms.NotFound(name);
    return entry->value.whole.get();
  };
  auto whole = ops::InlinePrograms(*program, find);
  if (!whole.ok()) return whole.status();
  return std::make_shared<const v1::Program>(*std::move(whole));
}

absl::StatusOr<ProgramRequest> Programs::RequestOf(TenantTransaction& transaction,
                                                   const TenantId& tenant,
                                                   std::shared_ptr<const v1::Program> program,
                                                   std::vector<ArrayInfo> inputs) const {
  ProgramRequest request{.inputs = std::move(inputs),
                         .functions = functions_->All(transaction, tenant)};
  absl::Status status;
  for (int i = 0; i < program->operations_size(); ++i) {
    ops::ForEachOperation(program->operations(i), [&](const v1::Operation& one) {
      const v1::KernelLaunch& launch = one.kernel_launch();
      if (launch.code_case() != v1::KernelLaunch::kModule) return;
      auto source = find_module_(transaction, tenant, launch.module());
      if (source.ok())
        request.modules[launch.module()] = *std::move(source);
      else
        status.Update(PrefixField(source.status(), absl::StrCat("operations[", i, "].")));
    });
  }
  if (!status.ok()) return status;
  request.program = std::move(program);
  return request;
}

absl::StatusOr<PlannedProgram> Programs::MakePlan(const ProgramRequest& request) {
  const FunctionsThen functions(request.functions);
  auto plan = ops::PlanProgram(*request.program, request.inputs, &functions);
  if (!plan.ok()) return plan.status();
  return WithSteps(request, *std::move(plan));
}

absl::StatusOr<PlannedProgram> Programs::WithSteps(const ProgramRequest& request,
                                                   ops::ProgramPlan plan) {
  auto bodies = std::make_shared<std::vector<std::vector<PlannedProgram>>>(plan.steps.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    for (const std::shared_ptr<ops::ProgramPlan>& body : plan.steps[i].bodies) {
      auto ready = WithSteps(request, std::move(*body));
      if (!ready.ok()) return ready.status();
      (*bodies)[i].push_back(*std::move(ready));
    }
    plan.steps[i].bodies.clear();
  }
  for (ops::ProgramStep& step : plan.steps) {
    if (!step.plan.has_value()) continue;
    step.plan->task.set_label(ops::OperationView(step.operation).label());
    const v1::KernelLaunch& launch = step.operation.kernel_launch();
    if (launch.code_case() != v1::KernelLaunch::kModule) continue;
    auto code = CodeOfModule(request.modules.at(launch.module()), launch);
    if (!code.ok()) return code.status();
    step.plan->code = *std::move(code);
  }
  PlannedProgram ready{.program = request.program, .bodies = std::move(bodies)};
  if (auto graph = ops::MakeGraph(plan); graph.has_value())
    ready.program_launch =
        std::make_shared<ProgramLaunch>(core_->journal_writer->NewId(), *std::move(graph));
  auto steps = std::make_shared<PlannedProgram::Steps>();
  for (ops::ProgramStep& step : plan.steps) {
    steps->push_back(step.plan.has_value() ? MakePlanned(*std::move(step.plan)) : nullptr);
    step.plan.reset();
  }
  ready.steps = std::move(steps);
  ready.plan = std::make_shared<const ops::ProgramPlan>(std::move(plan));
  return ready;
}

absl::StatusOr<PlannedProgram> Programs::Find(TenantTransaction& transaction,
                                              const TenantId& tenant, const std::string& name,
                                              const std::vector<ArrayInfo>& inputs,
                                              ProgramRequest* request) {
  const auto id = kPrograms.IdOf(name, tenant, "program_call.program");
  if (!id.ok()) return id.status();
  const auto* entry = table_.Find(transaction, tenant, *id);
  if (entry == nullptr) return kPrograms.NotFound(name);
  const Value& program = entry->value;
  if (inputs.size() != static_cast<size_t>(program.whole->inputs_size())) {
    return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, "program_call.inputs",
                        absl::StrCat("the program has ", program.whole->inputs_size(),
                                     " inputs, not ", inputs.size()));
  }
  auto known = program.plans.find(KindOf(inputs));
  if (known != program.plans.end()) return known->second;
  auto made = RequestOf(transaction, tenant, program.whole, inputs);
  if (!made.ok()) return PrefixField(made.status(), "program_call.program.");
  *request = *std::move(made);
  return PlannedProgram{.program = program.whole};
}

void Programs::Keep(TenantTransaction& transaction, const TenantId& tenant, const std::string& name,
                    const ProgramRequest& request, const PlannedProgram& ready) {
  const auto id = kPrograms.IdOf(name, tenant, "program_call.program");
  auto* entry = id.ok() ? table_.Find(transaction, tenant, *id) : nullptr;
  if (entry == nullptr || entry->value.whole != request.program)
    return;  // deleted or replaced since
  std::map<std::string, PlannedProgram>& plans = entry->value.plans;
  if (plans.size() >= kMaxPlans) {
    plans.clear();
    entry->control.Set(entry->value.Cost());
  }
  std::string kind = KindOf(request.inputs);
  if (plans.count(kind) > 0) return;
  // Without the room the next call plans again.
  if (entry->control.Grow(PlanCostOf(*entry->value.whole)).ok()) plans[std::move(kind)] = ready;
}

bool Programs::IsOfSession(TenantTransaction& transaction, const TenantId& tenant,
                           const std::string& id) const {
  const size_t dot = id.find('.');
  if (dot == std::string::npos) return false;
  return core_->catalogue.FindSession(transaction, tenant, id.substr(0, dot), core_->Now()).ok();
}

void Programs::Removed(GlobalTransaction& transaction, session::Session& session) {
  table_.EraseIf(transaction, session.tenant, absl::StrCat(session.id, "."),
                 [](const Value& value) { return value.of_session; });
}

void Programs::Restore(GlobalTransaction& transaction, uint64_t id,
                       const recovery::ProgramRecord& record) {
  table_.Restore(transaction, id, record);
}

absl::StatusOr<v1::Program> Programs::Get(const TenantId& tenant, const std::string& name) {
  const auto program = table_.Get(tenant, name);
  if (!program.ok()) return program.status();
  return **program;
}

absl::StatusOr<v1::ListProgramsResponse> Programs::List(const TenantId& tenant,
                                                        const v1::ListProgramsRequest& request) {
  v1::ListProgramsResponse response;
  auto write = [](const v1::Program& program, v1::Program* listed) {
    OmittedInProgramLists().CopyWithout(program, listed);
  };
  absl::Status status = table_.List(tenant, request, write, response.mutable_programs(),
                                    response.mutable_next_page_token());
  if (!status.ok()) return status;
  return response;
}

absl::Status Programs::Delete(const TenantId& tenant, const std::string& name) {
  return table_.Delete(tenant, name);
}

}  // namespace stride::engine
