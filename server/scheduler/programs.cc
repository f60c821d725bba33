#include "server/scheduler/programs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/base/error.h"
#include "server/base/page_size.h"
#include "server/ops/shape.h"
#include "server/recovery/records.pb.h"
#include "server/scheduler/answer.h"
#include "server/scheduler/describe.h"
#include "server/scheduler/durability.h"
#include "server/scheduler/functions.h"
#include "server/scheduler/operations.h"
#include "server/scheduler/recorder.h"
#include "server/session/control_cost.h"
#include "server/session/resource_name.h"

namespace stride::scheduler {
namespace {

// Programs of one tenant.
constexpr int64_t kMaxPrograms = 1000;
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

absl::Status Unknown(std::string_view type, const std::string& name) {
  return NotFound(v1::ERROR_REASON_PROGRAM_NOT_FOUND, type, name);
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
void Describe(const Programs::Ready& ready, v1::CreateProgramResponse* response) {
  for (const ArrayInfo& output : ready.plan->outputs) {
    v1::ArraySpec* spec = response->add_results();
    spec->set_data_type(static_cast<v1::DataType>(output.dtype));
    spec->mutable_shape()->Assign(output.shape.begin(), output.shape.end());
  }
  response->set_num_tasks(static_cast<int>(
      ready.replay != nullptr
          ? 1
          : std::count_if(ready.steps->begin(), ready.steps->end(), [](const auto& planned) {
              return planned == nullptr || !planned->plan.is_view;
            })));
}

}  // namespace

absl::StatusOr<v1::CreateProgramResponse> Programs::Create(
    const TenantId& tenant, const v1::CreateProgramRequest& request) {
  auto owner = session::ParseParent(request.parent(), tenant, "parent");
  if (!owner.ok()) return owner.status();
  if (*owner != tenant.value) return Unknown("tenant", absl::StrCat("tenants/", *owner));
  if (!session::IsResourceId(request.program_id())) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "program_id",
                        "must match [a-zA-Z0-9][a-zA-Z0-9._-]{0,254}");
  }
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
  const Key key{tenant, request.program_id()};
  v1::CreateProgramResponse response;
  Entry entry;
  v1::Program given = request.program();
  given.clear_omitted();
  given.set_name(absl::StrCat("tenants/", tenant.value, "/programs/", key.second));
  SetTimestamp(core_->Now(), given.mutable_create_time());
  entry.program = std::make_shared<const v1::Program>(std::move(given));
  absl::StatusOr<Draft> draft = Draft{};
  {
    TenantTransaction transaction(*core_, tenant);
    if (absl::Status status = CheckRoom(transaction, key); !status.ok()) return status;
    auto whole = Inlined(transaction, tenant, entry.program);
    if (!whole.ok()) return PrefixField(whole.status(), "program.");
    entry.whole = *std::move(whole);
    int64_t cost = CostOf(*entry.program, *entry.whole);
    if (DeclaresInputs(request.program())) cost += PlanCostOf(*entry.whole);
    auto charge = core_->accounts->ControlOf(tenant)->Take(cost);
    if (!charge.ok()) return charge.status();
    entry.control = *std::move(charge);
    draft = DraftOf(transaction, tenant, entry.whole, std::move(inputs));
    if (!draft.ok()) return PrefixField(draft.status(), "program.");
  }
  if (DeclaresInputs(request.program())) {
    auto ready = MakePlan(*draft);
    if (!ready.ok()) return PrefixField(ready.status(), "program.");
    Describe(*ready, &response);
    const size_t bytes = response.ByteSizeLong() + entry.program->ByteSizeLong();
    if (bytes > kMaxAnswerBytes) {
      return InvalidField(
          v1::ERROR_REASON_SIZE_LIMIT, "program.outputs",
          absl::StrCat("the description of the results does not fit an answer. Bytes: ", bytes,
                       ", limit: ", kMaxAnswerBytes, "; declare no inputs, or fewer results"));
    }
    entry.plans[KindOf(draft->inputs)] = *std::move(ready);
  }
  const std::shared_ptr<const v1::Program> program = entry.program;
  uint64_t number = 0;
  {
    TenantTransaction transaction(*core_, tenant);
    if (absl::Status status = CheckRoom(transaction, key); !status.ok()) return status;
    entry.record = core_->recorder->NewId();
    entry.of_session = IsOfSession(transaction, key);
    if (core_->durability != nullptr && !entry.of_session) {
      entry.durable = core_->durability->Defined(transaction, durable::DefinitionRow::kProgram,
                                                 RecordOf(key, entry), &number);
    }
    Save(transaction, key, entry);
    programs_.Of(transaction, tenant)[key] = std::move(entry);
  }
  *response.mutable_program() = *program;
  if (number != 0) core_->durability->Await(number);
  return response;
}

absl::Status Programs::CheckRoom(TenantTransaction& transaction, const Key& key) const {
  const auto& programs = programs_.Of(transaction, key.first);
  if (programs.count(key) > 0) {
    return MakeError(absl::StatusCode::kAlreadyExists, v1::ERROR_REASON_ALREADY_EXISTS,
                     absl::StrCat("the program exists already: ", key.second),
                     {{"name", key.second}});
  }
  int64_t used = 0;
  for (auto it = programs.lower_bound({key.first, ""});
       it != programs.end() && it->first.first == key.first; ++it)
    ++used;
  if (used < kMaxPrograms) return absl::OkStatus();
  return QuotaExceeded(v1::ERROR_REASON_QUOTA, key.first.value,
                       "the tenant has as many programs as it may; delete some",
                       {.quota = "programs", .limit = kMaxPrograms, .used = used, .asked = 1},
                       absl::Seconds(60));
}

absl::StatusOr<std::shared_ptr<const v1::Program>> Programs::Inlined(
    TenantTransaction& transaction, const TenantId& tenant,
    const std::shared_ptr<const v1::Program>& program) const {
  if (!ops::CallsPrograms(*program)) return program;
  const auto& programs = programs_.Of(transaction, tenant);
  auto find = [&](const std::string& name) -> absl::StatusOr<const v1::Program*> {
    auto parsed = session::ParseTenantResource(name, "programs", "program_call.program");
    if (!parsed.ok()) return parsed.status();
    auto it = programs.find({tenant, parsed->id});
    if (it == programs.end() || parsed->tenant != tenant.value) return Unknown("program", name);
    return it->second.whole.get();
  };
  auto whole = ops::InlinePrograms(*program, find);
  if (!whole.ok()) return whole.status();
  return std::make_shared<const v1::Program>(*std::move(whole));
}

absl::StatusOr<Programs::Draft> Programs::DraftOf(TenantTransaction& transaction,
                                                  const TenantId& tenant,
                                                  std::shared_ptr<const v1::Program> program,
                                                  std::vector<ArrayInfo> inputs) const {
  Draft draft{.inputs = std::move(inputs), .functions = functions_->All(transaction, tenant)};
  absl::Status status;
  for (int i = 0; i < program->operations_size(); ++i) {
    ops::ForEachOperation(program->operations(i), [&](const v1::Operation& one) {
      const v1::KernelLaunch& launch = one.kernel_launch();
      if (launch.code_case() != v1::KernelLaunch::kModule) return;
      auto source = find_module_(transaction, tenant, launch.module());
      if (source.ok())
        draft.modules[launch.module()] = *std::move(source);
      else
        status.Update(PrefixField(source.status(), absl::StrCat("operations[", i, "].")));
    });
  }
  if (!status.ok()) return status;
  draft.program = std::move(program);
  return draft;
}

absl::StatusOr<Programs::Ready> Programs::MakePlan(const Draft& draft) {
  const FunctionsThen functions(draft.functions);
  auto plan = ops::PlanProgram(*draft.program, draft.inputs, &functions);
  if (!plan.ok()) return plan.status();
  return ReadyOf(draft, *std::move(plan));
}

absl::StatusOr<Programs::Ready> Programs::ReadyOf(const Draft& draft, ops::ProgramPlan plan) {
  auto bodies = std::make_shared<std::vector<std::vector<Ready>>>(plan.steps.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    for (const std::shared_ptr<ops::ProgramPlan>& body : plan.steps[i].bodies) {
      auto ready = ReadyOf(draft, std::move(*body));
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
    auto code = CodeOfModule(draft.modules.at(launch.module()), launch);
    if (!code.ok()) return code.status();
    step.plan->code = *std::move(code);
  }
  Ready ready{.program = draft.program, .bodies = std::move(bodies)};
  if (auto graph = ops::MakeGraph(plan); graph.has_value())
    ready.replay = std::make_shared<Replay>(core_->recorder->NewId(), *std::move(graph));
  auto steps = std::make_shared<Programs::Ready::Steps>();
  for (ops::ProgramStep& step : plan.steps) {
    steps->push_back(step.plan.has_value() ? MakePlanned(*std::move(step.plan)) : nullptr);
    step.plan.reset();
  }
  ready.steps = std::move(steps);
  ready.plan = std::make_shared<const ops::ProgramPlan>(std::move(plan));
  return ready;
}

absl::StatusOr<Programs::Ready> Programs::Find(TenantTransaction& transaction,
                                               const TenantId& tenant, const std::string& name,
                                               const std::vector<ArrayInfo>& inputs, Draft* draft) {
  auto parsed = session::ParseTenantResource(name, "programs", "program_call.program");
  if (!parsed.ok()) return parsed.status();
  auto& programs = programs_.Of(transaction, tenant);
  auto it = programs.find({tenant, parsed->id});
  if (it == programs.end() || parsed->tenant != tenant.value) return Unknown("program", name);
  const Entry& entry = it->second;
  if (inputs.size() != static_cast<size_t>(entry.whole->inputs_size())) {
    return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, "program_call.inputs",
                        absl::StrCat("the program has ", entry.whole->inputs_size(),
                                     " inputs, not ", inputs.size()));
  }
  auto known = entry.plans.find(KindOf(inputs));
  if (known != entry.plans.end()) return known->second;
  auto made = DraftOf(transaction, tenant, entry.whole, inputs);
  if (!made.ok()) return PrefixField(made.status(), "program_call.program.");
  *draft = *std::move(made);
  return Ready{.program = entry.whole};
}

void Programs::Keep(TenantTransaction& transaction, const TenantId& tenant, const std::string& name,
                    const Draft& draft, const Ready& ready) {
  auto parsed = session::ParseTenantResource(name, "programs", "program_call.program");
  if (!parsed.ok()) return;
  auto& programs = programs_.Of(transaction, tenant);
  auto it = programs.find({tenant, parsed->id});
  if (it == programs.end() || it->second.whole != draft.program)
    return;  // deleted or replaced since
  std::map<std::string, Ready>& plans = it->second.plans;
  const int64_t cost = PlanCostOf(*it->second.whole);
  if (plans.size() >= kMaxPlans) {
    it->second.control.Set(it->second.control.bytes() - cost * static_cast<int64_t>(plans.size()));
    plans.clear();
  }
  std::string kind = KindOf(draft.inputs);
  if (plans.count(kind) > 0) return;
  // Without the room the next call plans again.
  if (it->second.control.Grow(cost).ok()) plans[std::move(kind)] = ready;
}

bool Programs::IsOfSession(TenantTransaction& transaction, const Key& key) const {
  const size_t dot = key.second.find('.');
  if (dot == std::string::npos) return false;
  return core_->catalogue
      .FindSession(transaction, key.first, key.second.substr(0, dot), core_->Now())
      .ok();
}

void Programs::Removed(GlobalTransaction& transaction, session::Session& session) {
  const std::string prefix = absl::StrCat(session.id, ".");
  auto& programs = programs_.Of(transaction, session.tenant);
  auto it = programs.lower_bound({session.tenant, prefix});
  while (it != programs.end() && it->first.first == session.tenant &&
         it->first.second.compare(0, prefix.size(), prefix) == 0) {
    if (it->second.of_session)
      core_->recorder->Erase(transaction, session.tenant, recovery::Kind::kProgram,
                             it->second.record);
    it = it->second.of_session ? programs.erase(it) : std::next(it);
  }
}

void Programs::Save(TenantTransaction& transaction, const Key& key, const Entry& entry) {
  if (!core_->recorder->on()) return;
  core_->recorder->Set(transaction, key.first, recovery::Kind::kProgram, entry.record,
                       RecordOf(key, entry));
}

recovery::ProgramRecord Programs::RecordOf(const Key& key, const Entry& entry) {
  recovery::ProgramRecord record;
  record.set_tenant(key.first.value);
  record.set_id(key.second);
  entry.program->SerializeToString(record.mutable_program());
  if (entry.whole != entry.program) entry.whole->SerializeToString(record.mutable_whole());
  record.set_durable(entry.durable);
  return record;
}

void Programs::RestoreFromDisk(GlobalTransaction& transaction, uint64_t row,
                               const std::string& bytes) {
  recovery::ProgramRecord record;
  if (!record.ParseFromString(bytes)) return;
  record.set_durable(row);
  Restore(transaction, core_->recorder->NewId(), record);
  const Key key{TenantId{record.tenant()}, record.id()};
  auto& programs = programs_.Of(transaction, key.first);
  if (auto it = programs.find(key); it != programs.end()) Save(transaction, key, it->second);
}

void Programs::Restore(GlobalTransaction& transaction, uint64_t id,
                       const recovery::ProgramRecord& record) {
  v1::Program program, whole;
  const bool calls = !record.whole().empty();
  if (!program.ParseFromString(record.program()) || !ops::CheckProgram(program).ok() ||
      !whole.ParseFromString(calls ? record.whole() : record.program())) {
    core_->options.log(
        absl::StrCat("a program that this version does not know was dropped: ", record.id()));
    return;
  }
  const Key key{TenantId{record.tenant()}, record.id()};
  Entry& entry = programs_.Of(transaction, key.first)[key];
  entry.record = id;
  entry.of_session = IsOfSession(transaction, key);
  entry.durable = record.durable();
  if (core_->durability != nullptr)
    core_->durability->RestoredDefinition(transaction, entry.durable);
  entry.program = std::make_shared<const v1::Program>(std::move(program));
  entry.whole = calls ? std::make_shared<const v1::Program>(std::move(whole)) : entry.program;
  entry.control = core_->accounts->ControlOf(key.first)->Hold(CostOf(*entry.program, *entry.whole));
}

absl::StatusOr<v1::Program> Programs::Get(const TenantId& tenant, const std::string& name) {
  auto parsed = session::ParseTenantResource(name, "programs", "name");
  if (!parsed.ok()) return parsed.status();
  std::shared_ptr<const v1::Program> program;
  {
    TenantTransaction transaction(*core_, tenant);
    const auto& programs = programs_.Of(transaction, tenant);
    auto it = programs.find({tenant, parsed->id});
    if (it != programs.end() && parsed->tenant == tenant.value) program = it->second.program;
  }
  if (program == nullptr) return Unknown("program", name);
  return *program;
}

absl::StatusOr<v1::ListProgramsResponse> Programs::List(const TenantId& tenant,
                                                        const v1::ListProgramsRequest& request) {
  auto owner = session::ParseParent(request.parent(), tenant, "parent");
  if (!owner.ok()) return owner.status();
  if (*owner != tenant.value) return Unknown("tenant", absl::StrCat("tenants/", *owner));
  auto page_size = PageSize(request.page_size());
  if (!page_size.ok()) return page_size.status();
  std::vector<std::pair<std::string, std::shared_ptr<const v1::Program>>> found;
  {
    TenantTransaction transaction(*core_, tenant);
    found = EntriesAfter(programs_.Of(transaction, tenant), tenant, request.page_token(),
                         *page_size, [](const Entry& entry) { return entry.program; });
  }
  v1::ListProgramsResponse response;
  WritePage(
      found, *page_size,
      [](const auto& program, v1::Program* listed) {
        OmittedInProgramLists().CopyWithout(*program, listed);
      },
      response.mutable_programs(), response.mutable_next_page_token());
  return response;
}

absl::Status Programs::Delete(const TenantId& tenant, const std::string& name) {
  auto parsed = session::ParseTenantResource(name, "programs", "name");
  if (!parsed.ok()) return parsed.status();
  uint64_t number = 0;
  {
    TenantTransaction transaction(*core_, tenant);
    auto& programs = programs_.Of(transaction, tenant);
    auto it = programs.find({tenant, parsed->id});
    if (parsed->tenant != tenant.value || it == programs.end()) return Unknown("program", name);
    core_->recorder->Erase(transaction, tenant, recovery::Kind::kProgram, it->second.record);
    if (core_->durability != nullptr)
      number = core_->durability->Undefined(transaction, it->second.durable);
    programs.erase(it);
  }
  if (number != 0) core_->durability->Await(number);
  return absl::OkStatus();
}

}  // namespace stride::scheduler
