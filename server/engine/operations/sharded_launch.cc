// Operations: over arrays that are spread over devices.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/block_pool.h"
#include "server/base/error.h"
#include "server/base/steady_time.h"
#include "server/engine/core/infos.h"
#include "server/engine/operations/operation_outputs.h"
#include "server/engine/operations/operations.h"
#include "server/engine/sharding/sharded.h"
#include "server/ops/operation_kind.h"
#include "server/ops/plan.h"

namespace stride::engine {

using ArrayPtr = std::shared_ptr<session::Array>;

// Parts are ordinary operations without names.
class Operations::PartLauncher : public PartRunner {
 public:
  PartLauncher(TenantTransaction& transaction, Operations* operations, const TenantId& tenant,
               SteadyTime deadline, const Resolved& whole)
      : transaction_(transaction),
        operations_(operations),
        core_(operations->core_),
        tenant_(tenant),
        deadline_(deadline),
        whole_(whole) {}

  absl::StatusOr<std::shared_ptr<const Planned>> Plan(
      const v1::Operation& operation, absl::Span<const ArrayInfo* const> inputs,
      absl::Span<const ArrayInfo* const> existing) override {
    return operations_->PlanFor(transaction_, tenant_, operation, inputs, existing);
  }

  absl::Status Admit(size_t num_parts, int64_t bytes) override {
    const int64_t limit = *core_->accounts->QuotaOf(tenant_).operations;
    const int64_t used = operations_->scheduler_->unfinished().Count(transaction_, tenant_);
    if (used + static_cast<int64_t>(num_parts) > limit) {
      return QuotaExceeded(v1::ERROR_REASON_QUEUE_FULL, tenant_.value,
                           "too many operations are queued; an operation over several devices "
                           "counts as one for each part; wait for some to end",
                           {.quota = "operations",
                            .limit = limit,
                            .used = used,
                            .asked = static_cast<int64_t>(num_parts)},
                           absl::Milliseconds(100));
    }
    return core_->accounts->CheckArrayBytes(tenant_, bytes);
  }

  absl::StatusOr<ArrayList> Run(Part part) override {
    Resolved resolved = whole_.WithInputs(std::move(part.inputs));
    resolved.device = part.device;
    resolved.reads_peers = part.reads_peers;
    for (Target& target : part.targets) {
      resolved.targets.push_back({.is_inline = target.existing == nullptr,
                                  .existing = std::move(target.existing),
                                  .fresh = target.fresh});
    }
    auto accepted = operations_->Launch(transaction_, tenant_, *part.operation, deadline_, resolved,
                                        std::move(part.planned));
    if (!accepted.ok()) return accepted.status();
    return std::move(accepted->outputs);
  }

  absl::StatusOr<ArrayPtr> Move(ArrayPtr array, int device) override {
    v1::Operation move;
    move.mutable_copy()->mutable_input()->set_handle(1);  // stands for the array
    move.mutable_copy()->set_move(true);
    Resolved resolved = whole_.WithInputs({std::move(array)});
    resolved.device = device;
    resolved.targets = {{.is_inline = true}};
    auto accepted = operations_->LaunchMove(transaction_, tenant_, move, deadline_, resolved);
    if (!accepted.ok()) return accepted.status();
    return accepted->outputs[0];
  }

  absl::StatusOr<ArrayPtr> NewArray(const ArrayInfo& info) override {
    if (absl::Status s = core_->accounts->CheckArrayBytes(tenant_, info.size_bytes()); !s.ok())
      return s;
    auto array = MakePooled<session::Array>();
    array->info = info;
    array->create_time = core_->Now();
    array->buffer = MakePooled<store::Buffer>(tenant_, info.size_bytes(), core_->reclaimer);
    return array;
  }

 private:
  TenantTransaction& transaction_;
  Operations* const operations_;
  Core* const core_;
  const TenantId tenant_;
  const SteadyTime deadline_;
  const Resolved& whole_;
};

bool Operations::IsSharded(const Resolved& resolved) {
  if (resolved.asks_sharding) return true;
  auto sharded = [](const ArrayPtr& array) { return array != nullptr && array->shards != nullptr; };
  if (std::any_of(resolved.inputs.begin(), resolved.inputs.end(), sharded)) return true;
  return std::any_of(resolved.targets.begin(), resolved.targets.end(),
                     [&](const Resolved::Target& target) { return sharded(target.existing); });
}

absl::StatusOr<Operations::Accepted> Operations::LaunchSharded(TenantTransaction& transaction,
                                                               const TenantId& tenant,
                                                               const ops::OperationView& operation,
                                                               SteadyTime deadline,
                                                               Resolved& resolved) {
  ShardedOperation sharded{.operation = &*operation, .inputs = resolved.inputs};
  sharded.device = resolved.device;
  for (size_t i = 0; i < operation.operands().size(); ++i)
    sharded.input_fields.push_back(operation.OperandPath(i));
  if (operation->has_kernel_launch() || operation->has_program_call()) {
    const std::string kind = operation.kind().name;
    return NotImplemented(absl::StrCat(kind, " of a sharded array"),
                          absl::StrCat("not implemented over several devices: ", kind,
                                       "; Copy each array to one device first"));
  }
  PartLauncher parts(transaction, this, tenant, deadline, resolved);
  const ops::OutputList& outputs = operation.outputs();
  for (size_t j = 0; j < outputs.size(); ++j) {
    const Resolved::Target& target = resolved.targets[j];
    sharded.existing.push_back(target.existing);
    sharded.output_fields.push_back(operation.OutputPath(j));
    sharded.wanted.emplace_back();
    if (!outputs[j]->has_sharding()) continue;
    // Its rank is the result's.
    auto planned = parts.Plan(*operation, InfosOf(resolved.inputs), Infos(outputs.size()));
    if (!planned.ok()) return planned.status();
    auto spread = ReadSharding(outputs[j]->sharding(), (*planned)->plan.outputs[j].shape.size(),
                               absl::StrCat(operation.OutputPath(j), ".sharding"));
    if (!spread.ok()) return spread.status();
    sharded.wanted.back() = *std::move(spread);
  }
  auto made = RunSharded(sharded, parts);
  if (!made.ok()) return made.status();
  for (size_t j = 0; j < made->size(); ++j) {
    const ArrayPtr& array = (*made)[j];
    const Resolved::Target& target = resolved.targets[j];
    if (array->info->size_bytes() > core_->options.max_array_bytes) {
      return InvalidField(
          v1::ERROR_REASON_SIZE_LIMIT, "outputs",
          absl::StrCat("the result is larger than an array may be. Bytes: ",
                       array->info->size_bytes(), ", limit: ", core_->options.max_array_bytes));
    }
    if (absl::Status s = CheckKept(array, target.name); !s.ok() && target.existing == nullptr)
      return s;
  }
  resolved.outputs = *std::move(made);
  if (absl::Status status = PublishOutputs(*core_, transaction, tenant, resolved); !status.ok())
    return status;
  Accepted accepted;
  accepted.outputs = resolved.outputs;
  if (!resolved.launched->empty()) accepted.task = resolved.launched->back();
  accepted.waits_for_helpers = true;
  return accepted;
}

absl::Status Operations::CheckKept(const ArrayPtr& array, const session::ArrayName& name) const {
  if (array->shards == nullptr || core_->array_persister == nullptr || name.tenant.empty())
    return absl::OkStatus();
  return NotImplemented(
      "named sharded arrays on disk",
      absl::StrCat("not implemented: a named array that is spread over devices, where named arrays "
                   "are kept on disk; make it in a session, or run the daemon with "
                   "--durable-bytes=0: ",
                   name.ToString()));
}

absl::StatusOr<ArrayPtr> Operations::CopyTo(TenantTransaction& transaction, const TenantId& tenant,
                                            const ArrayPtr& array, int device) {
  Resolved around;
  around.now = core_->Now();
  around.device = device;
  auto accepted =
      LaunchCopy(transaction, tenant, array, std::nullopt, SteadyTime::InfiniteFuture(), around);
  if (!accepted.ok()) return accepted.status();
  return accepted->outputs[0];
}

}  // namespace stride::engine
