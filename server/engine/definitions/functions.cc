#include "server/engine/definitions/functions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/steady_time.h"
#include "server/durable/rows.h"
#include "server/engine/persistence/answer.h"
#include "server/engine/persistence/describe.h"
#include "server/ops/trial_plans.h"
#include "server/recovery/records.pb.h"
#include "server/session/control_cost.h"

namespace stride::engine {
namespace {

constexpr ResourceKind kFunctions{.noun = "function",
                                  .collection = "functions",
                                  .not_found = v1::ERROR_REASON_FUNCTION_NOT_FOUND};

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

Functions::Functions(Core* core)
    : core_(core),
      table_(core, kFunctions, &identity::Quota::functions, recovery::Kind::kFunction,
             durable::DefinitionRow::kFunction,
             [](GlobalTransaction&, const recovery::FunctionRecord& record) {
               return ReadRecord(record);
             }) {}

int64_t Functions::Value::Cost() const { return CostOf(*message); }

void Functions::Value::WriteTo(recovery::FunctionRecord* record) const {
  message->SerializeToString(record->mutable_function());
  record->set_device_kind(read->device_kind);
}

std::optional<Functions::Value> Functions::ReadRecord(const recovery::FunctionRecord& record) {
  auto function = std::make_shared<v1::Function>();
  if (!function->ParseFromString(record.function())) return std::nullopt;
  auto read = ops::ReadFunction(*function, record.id());
  if (!read.ok()) return std::nullopt;
  read->device_kind = record.device_kind();
  return Value{.message = std::move(function),
               .read = std::make_shared<const ops::ClientFunction>(*std::move(read))};
}

absl::StatusOr<v1::Function> Functions::Create(const TenantId& tenant,
                                               const v1::CreateFunctionRequest& request,
                                               SteadyTime deadline) {
  absl::Status owned = kFunctions.CheckParent(request.parent(), tenant);
  if (!owned.ok()) return owned;
  absl::Status named = ops::CheckFunctionId(request.function_id(), "function_id");
  if (!named.ok()) return named;
  auto read = ops::ReadFunction(request.function(), request.function_id());
  if (!read.ok()) return PrefixField(read.status(), "function.");
  read->device_kind = request.device_kind();
  if (auto targets = Targets(read->device_kind); !targets.ok()) return targets.status();
  auto reservation =
      table_.Reserve(tenant, request.function_id(), CostOf(request.function()), deadline);
  if (!reservation.ok()) return reservation.status();
  absl::Status compiled = Compile(tenant, *read, deadline);
  if (absl::IsInvalidArgument(compiled))
    return AtField(compiled, TextField(request.function()), "does not compile");
  if (!compiled.ok()) return compiled;
  auto function = std::make_shared<v1::Function>(request.function());
  function->set_name(kFunctions.NameOf(tenant, request.function_id()));
  function->clear_omitted();
  SetTimestamp(core_->Now(), function->mutable_create_time());
  table_.Add(
      *std::move(reservation),
      {.message = function, .read = std::make_shared<const ops::ClientFunction>(*std::move(read))});
  return AnswerOf(*function);
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

void Functions::Restore(GlobalTransaction& transaction, uint64_t id,
                        const recovery::FunctionRecord& record) {
  table_.Restore(transaction, id, record);
}

absl::StatusOr<v1::Function> Functions::Get(const TenantId& tenant, const std::string& name) {
  const auto function = table_.Get(tenant, name);
  if (!function.ok()) return function.status();
  return AnswerOf(**function);
}

absl::StatusOr<v1::ListFunctionsResponse> Functions::List(const TenantId& tenant,
                                                          const v1::ListFunctionsRequest& request) {
  v1::ListFunctionsResponse response;
  auto write = [](const v1::Function& function, v1::Function* listed) {
    OmittedInFunctionLists().CopyWithout(function, listed);
    OmittedInFunctions().Fit(listed);
  };
  absl::Status status = table_.List(tenant, request, write, response.mutable_functions(),
                                    response.mutable_next_page_token());
  if (!status.ok()) return status;
  return response;
}

absl::Status Functions::Delete(const TenantId& tenant, const std::string& name) {
  return table_.Delete(tenant, name);
}

const ops::ClientFunction* Functions::Find(TenantTransaction& transaction, const TenantId& tenant,
                                           std::string_view id) const {
  const auto* entry = table_.Find(transaction, tenant, id);
  return entry != nullptr ? entry->value.read.get() : nullptr;
}

std::map<std::string, std::shared_ptr<const ops::ClientFunction>> Functions::All(
    TenantTransaction& transaction, const TenantId& tenant) const {
  std::map<std::string, std::shared_ptr<const ops::ClientFunction>> all;
  table_.ForEach(transaction, tenant, [&all](const std::string& id, const Value& value) {
    all.emplace(id, value.read);
  });
  return all;
}

}  // namespace stride::engine
