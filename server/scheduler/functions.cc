#include "server/scheduler/functions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/page_size.h"
#include "server/base/steady_time.h"
#include "server/ops/trial_plans.h"
#include "server/recovery/records.pb.h"
#include "server/scheduler/answer.h"
#include "server/scheduler/describe.h"
#include "server/scheduler/durability.h"
#include "server/scheduler/recorder.h"
#include "server/session/control_cost.h"
#include "server/session/resource_name.h"

namespace stride::scheduler {
namespace {

// Most functions of one tenant. Each of a function's bodies has at most 64 KiB of text.
constexpr int64_t kMaxFunctions = 1000;

// The fields that lists leave out.
const OmittedFields& OmittedInFunctionLists() {
  static const OmittedFields kLeftOut(
      {"ufunc.body", "reduction.map", "reduction.combine", "reduction.finish", "gufunc.body"});
  return kLeftOut;
}

// The fields that an answer leaves out when it is too large.
const OmittedFields& OmittedInFunctions() {
  static const OmittedFields kLarge({"ufunc.body", "reduction.map", "reduction.combine",
                                     "reduction.finish", "gufunc.body", "ufunc", "reduction",
                                     "gufunc"});
  return kLarge;
}

// The terms of an expression cost some hundred bytes each, and there are at most 256.
int64_t CostOf(const v1::ExpressionBody& expression) {
  constexpr int64_t kForAByte = 192, kMost = 100 << 10;
  int64_t bytes = std::min(kForAByte * static_cast<int64_t>(expression.text().size()), kMost);
  for (const std::string& text : expression.more_texts())
    bytes += std::min(kForAByte * static_cast<int64_t>(text.size()), kMost);
  return bytes;
}

// Cost of the request, the parsed function and the journal's record.
int64_t CostOf(const v1::Function& function) {
  const v1::ReductionDefinition& reduction = function.reduction();
  return session::kFunctionControlBytes + 2 * session::ControlBytesOf(function) +
         CostOf(function.ufunc().body().expression()) + CostOf(reduction.map().expression()) +
         CostOf(reduction.combine().expression()) + CostOf(reduction.finish().expression());
}

v1::Function AnswerOf(const v1::Function& function) {
  v1::Function answer = function;
  OmittedInFunctions().Fit(&answer);
  return answer;
}

absl::Status Unknown(std::string_view type, const std::string& name) {
  return NotFound(v1::ERROR_REASON_FUNCTION_NOT_FOUND, type, name);
}

std::string TextField(const v1::Function& function) {
  switch (function.kind_case()) {
    case v1::Function::kUfunc:
      return "function.ufunc.body.device_function.source";
    case v1::Function::kGufunc:
      return "function.gufunc.body.source";
    default:
      return "function.reduction";
  }
}

// The joint result of several compilations. The compiler's threads set it.
struct Outcome {
  absl::Mutex mutex;
  int left = 0;
  absl::Status first;
  void End(const absl::Status& status) {
    absl::MutexLock lock(&mutex);
    --left;
    if (first.ok()) first = status;
  }
};

}  // namespace

absl::StatusOr<v1::Function> Functions::Create(const TenantId& tenant,
                                               const v1::CreateFunctionRequest& request,
                                               SteadyTime deadline) {
  auto owner = session::ParseParent(request.parent(), tenant, "parent");
  if (!owner.ok()) return owner.status();
  if (*owner != tenant.value) return Unknown("tenant", absl::StrCat("tenants/", *owner));
  absl::Status named = ops::CheckFunctionId(request.function_id(), "function_id");
  if (!named.ok()) return named;
  auto read = ops::ReadFunction(request.function(), request.function_id());
  if (!read.ok()) return PrefixField(read.status(), "function.");
  read->device_kind = request.device_kind();
  if (auto targets = Targets(read->device_kind); !targets.ok()) return targets.status();
  auto charge = core_->accounts->ControlOf(tenant)->Take(CostOf(request.function()));
  if (!charge.ok()) return charge.status();
  const Key key{tenant, request.function_id()};
  if (absl::Status status = Reserve(key); !status.ok()) return status;
  absl::Status compiled = Compile(tenant, *read, deadline);
  auto function = std::make_shared<v1::Function>(request.function());
  function->set_name(absl::StrCat("tenants/", tenant.value, "/functions/", key.second));
  function->clear_omitted();
  SetTimestamp(core_->Now(), function->mutable_create_time());
  uint64_t number = 0;
  std::shared_ptr<const v1::Function> made;
  {
    TenantTransaction transaction(*core_, tenant);
    auto& [functions, creating] = partitions_.Of(transaction, tenant);
    creating.erase(key);
    if (absl::IsInvalidArgument(compiled))
      return AtField(compiled, TextField(request.function()), "does not compile");
    if (!compiled.ok()) return compiled;
    Entry& entry = functions[key];
    entry.record = core_->recorder->NewId();
    entry.read = std::make_shared<const ops::ClientFunction>(*std::move(read));
    entry.control = *std::move(charge);
    entry.control.Set(CostOf(*function));
    entry.function = made = std::move(function);
    if (core_->durability != nullptr) {
      entry.durable = core_->durability->Defined(transaction, durable::DefinitionRow::kFunction,
                                                 RecordOf(key, entry), &number);
    }
    Save(transaction, key, entry);
  }
  if (number != 0) core_->durability->Await(number);
  return AnswerOf(*made);
}

absl::Status Functions::Reserve(const Key& key) {
  TenantTransaction transaction(*core_, key.first);
  auto& [functions, creating] = partitions_.Of(transaction, key.first);
  if (functions.count(key) > 0 || creating.count(key) > 0) {
    return MakeError(absl::StatusCode::kAlreadyExists, v1::ERROR_REASON_ALREADY_EXISTS,
                     absl::StrCat("the function exists already: ", key.second),
                     {{"name", key.second}});
  }
  int64_t used = 0;
  for (auto it = functions.lower_bound({key.first, ""});
       it != functions.end() && it->first.first == key.first; ++it)
    ++used;
  for (const Key& other : creating) used += other.first == key.first;
  if (used >= kMaxFunctions) {
    return QuotaExceeded(v1::ERROR_REASON_QUOTA, key.first.value,
                         "the tenant has as many functions as it may; delete some",
                         {.quota = "functions", .limit = kMaxFunctions, .used = used, .asked = 1},
                         absl::Seconds(60));
  }
  creating.insert(key);
  return absl::OkStatus();
}

absl::StatusOr<std::set<std::string>> Functions::Targets(const std::string& device_kind) const {
  std::set<std::string> targets;
  for (const auto& device : core_->broker->devices()) {
    if (device_kind.empty() || device.kind() == device_kind) targets.insert(device.target());
  }
  if (!targets.empty() || device_kind.empty()) return targets;
  return MakeError(
      absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DEVICE_NOT_SERVING,
      absl::StrCat("no device here can run this function; device kind: ", device_kind));
}

// Compiles for every device that may run the function, so that the code is ready at its first use.
absl::Status Functions::Compile(const TenantId& tenant, const ops::ClientFunction& function,
                                SteadyTime deadline) {
  auto codes = ops::TrialCodes(function);
  if (!codes.ok()) return codes.status();
  auto targets = Targets(function.device_kind);
  if (!targets.ok()) return targets.status();
  auto outcome = std::make_shared<Outcome>();
  outcome->left = static_cast<int>(codes->size() * targets->size());
  for (const std::string& target : *targets) {
    for (const wire::Code& code : *codes) {
      core_->broker->compiler().Compile(
          tenant, target, code, [outcome](const auto& result) { outcome->End(result.status()); });
    }
  }
  auto done = [&outcome] { return outcome->left == 0; };
  absl::MutexLock lock(&outcome->mutex);
  if (Await(outcome->mutex, absl::Condition(&done), deadline)) return outcome->first;
  return MakeError(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE,
                   "the deadline passed during compilation");
}

void Functions::Save(TenantTransaction& transaction, const Key& key, const Entry& entry) {
  if (!core_->recorder->on()) return;
  core_->recorder->Set(transaction, key.first, recovery::Kind::kFunction, entry.record,
                       RecordOf(key, entry));
}

recovery::FunctionRecord Functions::RecordOf(const Key& key, const Entry& entry) {
  recovery::FunctionRecord record;
  record.set_tenant(key.first.value);
  record.set_id(key.second);
  entry.function->SerializeToString(record.mutable_function());
  record.set_device_kind(entry.read->device_kind);
  record.set_durable(entry.durable);
  return record;
}

void Functions::RestoreFromDisk(GlobalTransaction& transaction, uint64_t row,
                                const std::string& bytes) {
  recovery::FunctionRecord record;
  if (!record.ParseFromString(bytes)) return;
  record.set_durable(row);
  Restore(transaction, core_->recorder->NewId(), record);
  const Key key{TenantId{record.tenant()}, record.id()};
  auto& functions = partitions_.Of(transaction, key.first).functions;
  if (auto it = functions.find(key); it != functions.end()) Save(transaction, key, it->second);
}

void Functions::Restore(GlobalTransaction& transaction, uint64_t id,
                        const recovery::FunctionRecord& record) {
  Entry entry;
  entry.record = id;
  entry.durable = record.durable();
  if (core_->durability != nullptr)
    core_->durability->RestoredDefinition(transaction, entry.durable);
  auto function = std::make_shared<v1::Function>();
  if (!function->ParseFromString(record.function())) return;
  auto read = ops::ReadFunction(*function, record.id());
  if (!read.ok()) {
    core_->options.log(
        absl::StrCat("a function that this version does not know was dropped: ", record.id()));
    return;
  }
  read->device_kind = record.device_kind();
  entry.control = core_->accounts->ControlOf(TenantId{record.tenant()})->Hold(CostOf(*function));
  entry.function = std::move(function);
  entry.read = std::make_shared<const ops::ClientFunction>(*std::move(read));
  const TenantId tenant{record.tenant()};
  partitions_.Of(transaction, tenant).functions[{tenant, record.id()}] = std::move(entry);
}

absl::StatusOr<v1::Function> Functions::Get(const TenantId& tenant, const std::string& name) {
  auto parsed = session::ParseTenantResource(name, "functions", "name");
  if (!parsed.ok()) return parsed.status();
  std::shared_ptr<const v1::Function> function;
  {
    TenantTransaction transaction(*core_, tenant);
    const auto& functions = partitions_.Of(transaction, tenant).functions;
    auto it = functions.find({tenant, parsed->id});
    if (it != functions.end() && parsed->tenant == tenant.value) function = it->second.function;
  }
  if (function == nullptr) return Unknown("function", name);
  return AnswerOf(*function);
}

absl::StatusOr<v1::ListFunctionsResponse> Functions::List(const TenantId& tenant,
                                                          const v1::ListFunctionsRequest& request) {
  auto owner = session::ParseParent(request.parent(), tenant, "parent");
  if (!owner.ok()) return owner.status();
  if (*owner != tenant.value) return Unknown("tenant", absl::StrCat("tenants/", *owner));
  auto page_size = PageSize(request.page_size());
  if (!page_size.ok()) return page_size.status();
  std::vector<std::pair<std::string, std::shared_ptr<const v1::Function>>> found;
  {
    TenantTransaction transaction(*core_, tenant);
    found =
        EntriesAfter(partitions_.Of(transaction, tenant).functions, tenant, request.page_token(),
                     *page_size, [](const Entry& entry) { return entry.function; });
  }
  v1::ListFunctionsResponse response;
  WritePage(
      found, *page_size,
      [](const auto& function, v1::Function* listed) {
        OmittedInFunctionLists().CopyWithout(*function, listed);
        OmittedInFunctions().Fit(listed);
      },
      response.mutable_functions(), response.mutable_next_page_token());
  return response;
}

absl::Status Functions::Delete(const TenantId& tenant, const std::string& name) {
  auto parsed = session::ParseTenantResource(name, "functions", "name");
  if (!parsed.ok()) return parsed.status();
  uint64_t number = 0;
  {
    TenantTransaction transaction(*core_, tenant);
    auto& functions = partitions_.Of(transaction, tenant).functions;
    auto it = functions.find({tenant, parsed->id});
    if (parsed->tenant != tenant.value || it == functions.end()) return Unknown("function", name);
    core_->recorder->Erase(transaction, tenant, recovery::Kind::kFunction, it->second.record);
    if (core_->durability != nullptr)
      number = core_->durability->Undefined(transaction, it->second.durable);
    functions.erase(it);
  }
  if (number != 0) core_->durability->Await(number);
  return absl::OkStatus();
}

const ops::ClientFunction* Functions::Find(TenantTransaction& transaction, const TenantId& tenant,
                                           std::string_view id) const {
  const auto& functions = partitions_.Of(transaction, tenant).functions;
  auto it = functions.find({tenant, std::string(id)});
  return it == functions.end() ? nullptr : it->second.read.get();
}

std::map<std::string, std::shared_ptr<const ops::ClientFunction>> Functions::All(
    TenantTransaction& transaction, const TenantId& tenant) const {
  std::map<std::string, std::shared_ptr<const ops::ClientFunction>> all;
  const auto& functions = partitions_.Of(transaction, tenant).functions;
  for (auto it = functions.lower_bound({tenant, ""});
       it != functions.end() && it->first.first == tenant; ++it)
    all.emplace(it->first.second, it->second.read);
  return all;
}

}  // namespace stride::scheduler
