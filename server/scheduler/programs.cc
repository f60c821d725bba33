#include "server/scheduler/programs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/base/error.h"
#include "server/base/page_size.h"
#include "server/ops/shape.h"
#include "server/recovery/records.pb.h"
#include "server/scheduler/describe.h"
#include "server/scheduler/functions.h"
#include "server/session/resource_name.h"

namespace stride::scheduler {
namespace {

// Of one tenant.
constexpr int64_t kMaxPrograms = 1000;
constexpr size_t kMaxProgramBytes = 1 << 20;
// Of one program. A client that goes through more shapes plans anew now and then.
constexpr size_t kMaxPlans = 32;

absl::Status Unknown(std::string_view type, const std::string& name) {
  return NotFound(v1::ERROR_REASON_PROGRAM_NOT_FOUND, type, name);
}

// What a plan depends on.
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
  Locked lock(*core_);
  if (programs_.count(key) > 0) {
    return MakeError(absl::StatusCode::kAlreadyExists, v1::ERROR_REASON_ALREADY_EXISTS,
                     absl::StrCat("the program exists already: ", key.second),
                     {{"name", key.second}});
  }
  int64_t used = 0;
  for (auto it = programs_.lower_bound({tenant, ""});
       it != programs_.end() && it->first.first == tenant; ++it)
    ++used;
  if (used >= kMaxPrograms) {
    return QuotaExceeded(v1::ERROR_REASON_QUOTA, tenant.value,
                         "the tenant has as many programs as it may; delete some",
                         {.quota = "programs", .limit = kMaxPrograms, .used = used, .asked = 1},
                         absl::Seconds(60));
  }
  v1::CreateProgramResponse response;
  Entry entry;
  v1::Program program = request.program();
  program.set_name(absl::StrCat("tenants/", tenant.value, "/programs/", key.second));
  SetTimestamp(core_->Now(), program.mutable_create_time());
  entry.program = std::make_shared<const v1::Program>(std::move(program));
  if (DeclaresInputs(request.program())) {
    auto plan = PlanFor(tenant, inputs, &entry);
    if (!plan.ok()) return PrefixField(plan.status(), "program.");
    for (const ArrayInfo& output : (*plan)->outputs) {
      v1::ArraySpec* spec = response.add_results();
      spec->set_data_type(static_cast<v1::DataType>(output.dtype));
      spec->mutable_shape()->Assign(output.shape.begin(), output.shape.end());
    }
    const auto is_task = [](const ops::ProgramStep& step) {
      return !step.plan || !step.plan->is_view;
    };
    response.set_num_tasks(
        static_cast<int>(std::count_if((*plan)->steps.begin(), (*plan)->steps.end(), is_task)));
  }
  entry.record = core_->recorder.NewId();
  Save(key, entry);
  *response.mutable_program() = *entry.program;
  programs_[key] = std::move(entry);
  return response;
}

absl::StatusOr<Programs::PlanPtr> Programs::PlanFor(const TenantId& tenant,
                                                    const std::vector<ArrayInfo>& inputs,
                                                    Entry* entry) {
  const std::string kind = KindOf(inputs);
  if (auto it = entry->plans.find(kind); it != entry->plans.end()) return it->second;
  const TenantFunctions functions(*functions_, tenant);
  auto plan = ops::PlanProgram(*entry->program, inputs, &functions);
  if (!plan.ok()) return plan.status();
  if (entry->plans.size() >= kMaxPlans) entry->plans.clear();
  return entry->plans[kind] = std::make_shared<const ops::ProgramPlan>(*std::move(plan));
}

absl::StatusOr<Programs::Ready> Programs::Find(const TenantId& tenant, const std::string& name,
                                               const std::vector<ArrayInfo>& inputs) {
  auto parsed = session::ParseTenantResource(name, "programs", "program_call.program");
  if (!parsed.ok()) return parsed.status();
  auto it = programs_.find({tenant, parsed->id});
  if (it == programs_.end() || parsed->tenant != tenant.value) return Unknown("program", name);
  if (inputs.size() != static_cast<size_t>(it->second.program->inputs_size())) {
    return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, "program_call.inputs",
                        absl::StrCat("the program has ", it->second.program->inputs_size(),
                                     " inputs, not ", inputs.size()));
  }
  auto plan = PlanFor(tenant, inputs, &it->second);
  if (!plan.ok()) return PrefixField(plan.status(), "program_call.program.");
  return Ready{it->second.program, *std::move(plan)};
}

void Programs::Save(const Key& key, const Entry& entry) {
  if (!core_->recorder.on()) return;
  recovery::ProgramRecord record;
  record.set_tenant(key.first.value);
  record.set_id(key.second);
  entry.program->SerializeToString(record.mutable_program());
  core_->recorder.Set(recovery::Kind::kProgram, entry.record, record);
}

void Programs::Restore(uint64_t id, const recovery::ProgramRecord& record) {
  v1::Program program;
  if (!program.ParseFromString(record.program()) || !ops::CheckProgram(program).ok()) {
    core_->options.log(
        absl::StrCat("a program that this version does not know was dropped: ", record.id()));
    return;
  }
  Entry& entry = programs_[{TenantId{record.tenant()}, record.id()}];
  entry.record = id;
  entry.program = std::make_shared<const v1::Program>(std::move(program));
}

absl::StatusOr<v1::Program> Programs::Get(const TenantId& tenant, const std::string& name) {
  auto parsed = session::ParseTenantResource(name, "programs", "name");
  if (!parsed.ok()) return parsed.status();
  Locked lock(*core_);
  auto it = programs_.find({tenant, parsed->id});
  if (it == programs_.end() || parsed->tenant != tenant.value) return Unknown("program", name);
  return *it->second.program;
}

absl::StatusOr<v1::ListProgramsResponse> Programs::List(const TenantId& tenant,
                                                        const v1::ListProgramsRequest& request) {
  auto owner = session::ParseParent(request.parent(), tenant, "parent");
  if (!owner.ok()) return owner.status();
  if (*owner != tenant.value) return Unknown("tenant", absl::StrCat("tenants/", *owner));
  auto page_size = PageSize(request.page_size());
  if (!page_size.ok()) return page_size.status();
  v1::ListProgramsResponse response;
  Locked lock(*core_);
  std::string last;
  for (auto it = programs_.upper_bound({tenant, request.page_token()});
       it != programs_.end() && it->first.first == tenant; ++it) {
    if (response.programs_size() == *page_size) {
      response.set_next_page_token(last);
      break;
    }
    *response.add_programs() = *it->second.program;
    last = it->first.second;
  }
  return response;
}

absl::Status Programs::Delete(const TenantId& tenant, const std::string& name) {
  auto parsed = session::ParseTenantResource(name, "programs", "name");
  if (!parsed.ok()) return parsed.status();
  Locked lock(*core_);
  auto it = programs_.find({tenant, parsed->id});
  if (parsed->tenant != tenant.value || it == programs_.end()) return Unknown("program", name);
  core_->recorder.Erase(recovery::Kind::kProgram, it->second.record);
  programs_.erase(it);
  return absl::OkStatus();
}

}  // namespace stride::scheduler
