#include "server/engine/operations/resolve_operation.h"

#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "server/base/block_pool.h"
#include "server/base/device_name.h"
#include "server/base/error.h"
#include "server/engine/core/array_spec.h"
#include "server/session/resource_name.h"

namespace stride::engine {

using session::Array;
using ArrayPtr = std::shared_ptr<Array>;

namespace {

constexpr int kMaxPriority = 10;

absl::StatusOr<ArrayPtr> InlineArray(Core& core, const TenantId& tenant,
                                     const v1::InlineArray& inline_array) {
  auto info = CheckSpec(inline_array.spec(), core.options.max_inline_bytes, "inline_array.spec");
  if (!info.ok()) return info.status();
  int64_t declared = info->size_bytes();
  if (declared != static_cast<int64_t>(inline_array.data().size())) {
    return InvalidField(v1::ERROR_REASON_SIZE_MISMATCH, "inline_array.data",
                        absl::StrCat("the bytes do not fit dtype and shape. Declared: ", declared,
                                     ", sent: ", inline_array.data().size()));
  }
  session::TenantAccounts& accounts = *core.accounts;
  if (absl::Status status = accounts.CheckInlineBytes(tenant, declared); !status.ok())
    return AtField(status, "inline_array", "beyond a quota");
  if (absl::Status status = accounts.CheckArrayBytes(tenant, declared); !status.ok())
    return AtField(status, "inline_array", "beyond a quota");
  accounts.AddUpload(tenant, declared);
  auto array = MakePooled<Array>();
  array->info = *std::move(info);
  array->buffer = MakePooled<store::Buffer>(tenant, declared, core.reclaimer);
  // Counted until the last owner of the bytes releases them.
  struct Counted {
    std::string bytes;
    std::shared_ptr<const void> count;
  };
  auto counted = std::make_shared<const Counted>(
      Counted{inline_array.data(), accounts.HoldInlineBytes(tenant, declared)});
  array->buffer->inline_bytes = std::shared_ptr<const std::string>(counted, &counted->bytes);
  return array;
}

absl::StatusOr<ArrayPtr> ResolveOperand(Core& core, TenantTransaction& transaction,
                                        const TenantId& tenant, const session::Session* session,
                                        const v1::Operand& operand) {
  switch (operand.source_case()) {
    case v1::Operand::kHandle:
      if (session == nullptr) {
        return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "handle",
                            "a handle needs the request's session; set `session` to sessions/{id}");
      }
      return session::Catalogue::FindArray(*session, operand.handle());
    case v1::Operand::kName: {
      auto name = session::ParseArrayName(operand.name(), "name");
      if (!name.ok()) return name.status();
      return core.catalogue.FindArray(transaction, tenant, *name, core.Now());
    }
    case v1::Operand::kInlineArray:
      return InlineArray(core, tenant, operand.inline_array());
    default:
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "source",
                          "an operand is a handle, a name, an inline array or a scalar");
  }
}

absl::Status ResolveOutput(Core& core, TenantTransaction& transaction, const TenantId& tenant,
                           const v1::Output& output, absl::FunctionRef<std::string()> field,
                           ResolvedOperation* resolved) {
  ResolvedOperation::Target target;
  switch (output.target_case()) {
    case v1::Output::kHandle:
      if (resolved->session == nullptr || output.handle() == 0) {
        return InvalidField(v1::ERROR_REASON_INVALID_FIELD, absl::StrCat(field(), ".handle"),
                            "an output handle is not 0 and needs the request's session");
      }
      target.handle = output.handle();
      break;
    case v1::Output::kName: {
      auto name = session::ParseArrayName(output.name(), absl::StrCat(field(), ".name"));
      if (!name.ok()) return name.status();
      target.name = *name;
      break;
    }
    case v1::Output::kInlineResult:
      target.is_inline = true;
      break;
    default:
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, absl::StrCat(field(), ".target"),
                          "an output is a handle, a name or inline_result");
  }
  const bool taken = target.handle != 0 ? resolved->session->arrays.contains(target.handle)
                                        : !target.is_inline &&
                                              core.catalogue.Has(transaction, tenant, target.name);
  bool exists = false;
  if (!target.is_inline && (output.existing() || taken)) {
    auto found = target.handle != 0
                     ? session::Catalogue::FindArray(*resolved->session, target.handle)
                     : core.catalogue.FindArray(transaction, tenant, target.name, resolved->now);
    exists = found.ok();
    if (!exists) return found.status();
    if (exists && !output.existing()) {
      const std::string name = (*found)->name.ToString();
      return MakeError(absl::StatusCode::kAlreadyExists, v1::ERROR_REASON_ALREADY_EXISTS,
                       absl::StrCat("the output exists already; choose another name, delete it "
                                    "first, or set `existing`: ",
                                    name),
                       {{"name", name}, {"field", field()}});
    }
    if (exists && !(*found)->status().ok()) return (*found)->status();
    target.existing = *found;
  }
  if (!target.is_inline && !exists) {
    for (const auto& other : resolved->targets) {
      if (other.is_inline || other.handle != target.handle) continue;
      if (target.handle != 0 || other.name.ToString() == target.name.ToString()) {
        return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field(),
                            "two outputs have the same target");
      }
    }
  } else if (target.is_inline && output.existing()) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, absl::StrCat(field(), ".existing"),
                        "an inline result cannot exist already");
  }
  resolved->targets.push_back(std::move(target));
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPriority(int priority, const std::string& field) {
  if (priority >= -kMaxPriority && priority <= kMaxPriority) return absl::OkStatus();
  return InvalidField(
      v1::ERROR_REASON_INVALID_FIELD, field,
      absl::StrCat("from ", -kMaxPriority, " to ", kMaxPriority, ". Got: ", priority));
}

absl::StatusOr<int> FindDevice(const Core& core, const std::string& name) {
  const auto& devices = core.broker->devices();
  for (size_t i = 0; i < devices.size(); ++i) {
    const auto& device = devices[i];
    if (NamesDevice(name, device.id(), device.kind(), device.index())) return static_cast<int>(i);
  }
  return NotFound(v1::ERROR_REASON_DEVICE_NOT_FOUND, "device", name);
}

absl::Status ResolveOperation(Core& core, TenantTransaction& transaction, const TenantId& tenant,
                              const std::string& session, const ops::OperationView& operation,
                              ResolvedOperation* resolved) {
  if (!session.empty()) {
    auto found =
        core.catalogue.FindSessionNamed(transaction, tenant, session, "session", resolved->now);
    if (!found.ok()) return found.status();
    resolved->session = *std::move(found);
  }
  if (absl::Status status = CheckPriority(operation->priority(), "priority"); !status.ok())
    return status;
  if (operation->priority() != 0) resolved->extras.priority = operation->priority();
  if (!operation->device().empty()) {
    auto device = FindDevice(core, operation->device());
    if (!device.ok()) return device.status();
    resolved->device = *device;
  }
  const ops::OperandList& operands = operation.operands();
  resolved->inputs.reserve(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i]->source_case() == v1::Operand::kScalar) {
      resolved->inputs.push_back(nullptr);
      continue;
    }
    auto array = ResolveOperand(core, transaction, tenant, resolved->session.get(), *operands[i]);
    if (!array.ok()) {
      return PrefixField(array.status(), absl::StrCat(operation.OperandPath(i), "."));
    }
    if (!(*array)->status().ok()) return (*array)->status();
    resolved->inputs.push_back(*std::move(array));
  }
  const ops::OutputList& outputs = operation.outputs();
  resolved->targets.reserve(outputs.size());
  for (size_t j = 0; j < outputs.size(); ++j) {
    auto field = [&] { return operation.OutputPath(j); };
    absl::Status status = ResolveOutput(core, transaction, tenant, *outputs[j], field, resolved);
    if (!status.ok()) return status;
    resolved->asks_sharding |= outputs[j]->has_sharding();
  }
  return absl::OkStatus();
}

}  // namespace stride::engine
