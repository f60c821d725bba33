#include "server/engine/definitions/modules.h"

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/notification.h"
#include "server/base/error.h"
#include "server/base/steady_time.h"
#include "server/engine/persistence/answer.h"
#include "server/engine/persistence/describe.h"
#include "server/ops/compiler_options.h"
#include "server/recovery/records.pb.h"
#include "server/session/control_cost.h"

namespace stride::engine {
namespace {

constexpr ResourceKind kModules{
    .noun = "module", .collection = "modules", .not_found = v1::ERROR_REASON_MODULE_NOT_FOUND};
constexpr size_t kMaxCodeBytes = 8 << 20;
constexpr int kMaxGlobals = 256;  // as for a launch

// The fields that lists leave out, and those that an answer leaves out when it is too large.
const OmittedFields& OmittedInModuleLists() {
  static const OmittedFields kLeftOut({"log", "source", "ptx", "binary"});
  return kLeftOut;
}
const OmittedFields& OmittedInModules() {
  static const OmittedFields kLarge({"log", "source", "ptx", "binary", "kernels", "global_infos",
                                     "entries", "globals", "options"});
  return kLarge;
}

int64_t CostOf(const v1::Module& module) {
  return session::kModuleControlBytes + session::ControlBytesOf(module);
}

v1::Module AnswerOf(const v1::Module& module) {
  v1::Module answer = module;
  OmittedInModules().Fit(&answer);
  return answer;
}

// A value that another thread delivers. Shared by both, since the waiter may give up first.
template <typename T>
class Promise {
 public:
  void Set(absl::StatusOr<T> value) {
    value_ = std::move(value);
    ready_.Notify();
  }
  absl::StatusOr<T> Wait(SteadyTime deadline) {
    if (Await(ready_, deadline)) return value_;
    return MakeError(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE,
                     "the deadline passed during compilation");
  }

 private:
  absl::StatusOr<T> value_ = absl::UnknownError("not set");
  absl::Notification ready_;
};

absl::StatusOr<wire::Source> SourceOf(const v1::Module& module, std::string_view prefix) {
  wire::Source source;
  switch (module.code_case()) {
    case v1::Module::kSource:
      source.set_kind(wire::Source::KIND_CUDA_CPP);
      source.set_text(module.source());
      break;
    case v1::Module::kPtx:
      source.set_kind(wire::Source::KIND_PTX);
      source.set_text(module.ptx());
      break;
    case v1::Module::kBinary:
      source.set_kind(wire::Source::KIND_BINARY);
      source.set_text(module.binary());
      break;
    default:
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, absl::StrCat(std::string(prefix), "code"),
                          "a module has source, ptx or binary");
  }
  if (source.text().empty() || source.text().size() > kMaxCodeBytes) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, absl::StrCat(std::string(prefix), "code"),
        absl::StrCat("code is from 1 to ", kMaxCodeBytes, " bytes. Got: ", source.text().size()));
  }
  *source.mutable_options() = module.options();
  *source.mutable_entries() = module.entries();
  *source.mutable_globals() = module.globals();
  return source;
}

absl::Status CheckGlobals(const google::protobuf::RepeatedPtrField<std::string>& names) {
  if (names.size() > kMaxGlobals) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, "module.globals",
        absl::StrCat("too many variables: ", names.size(), ", at most ", kMaxGlobals));
  }
  std::set<std::string> seen;
  for (int i = 0; i < names.size(); ++i) {
    const std::string field = absl::StrCat("module.globals[", i, "]");
    if (names[i].empty())
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field, "the variable's name is missing");
    if (!seen.insert(names[i]).second)
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field, "the variable is named twice");
  }
  return absl::OkStatus();
}

// Attributes a compiler's refusal to the module's field that caused it.
absl::Status AtModule(const absl::Status& refusal, const wire::Source& source) {
  if (!absl::IsInvalidArgument(refusal)) return refusal;
  if (ReasonOf(refusal) == v1::ERROR_REASON_UNKNOWN_ENTRY) {
    const std::string name = MetadataOf(refusal, "entry");
    for (int i = 0; i < source.entries_size(); ++i) {
      if (source.entries(i) != name) continue;
      return AtField(refusal, absl::StrCat("entries[", i, "]"), "not in the code");
    }
    for (int i = 0; i < source.globals_size(); ++i) {
      if ("&" + source.globals(i) != name) continue;
      return AtField(refusal, absl::StrCat("globals[", i, "]"), "not in the code");
    }
  }
  switch (source.kind()) {
    case wire::Source::KIND_PTX:
      return AtField(refusal, "ptx", "does not compile");
    case wire::Source::KIND_BINARY:
      return AtField(refusal, "binary", "cannot be read");
    default:
      return AtField(refusal, "source", "does not compile");
  }
}

v1::KernelInfo KernelInfoOf(const wire::KernelDescription& kernel, const std::string& target) {
  v1::KernelInfo info;
  info.set_entry(kernel.entry());
  info.set_target(target);
  info.set_max_threads_per_block(kernel.max_threads_per_block());
  for (const auto& parameter : kernel.parameters()) {
    v1::KernelParameter* out = info.add_parameters();
    out->set_type(parameter.type());
    out->set_offset_bytes(parameter.offset());
    out->set_size_bytes(parameter.size());
  }
  return info;
}

// Adds each variable, with its size on the device.
void AddGlobals(const wire::ModuleDescription& described, const wire::ModuleLoaded& loaded,
                const std::string& target, v1::Module* module) {
  for (const wire::GlobalDescription& global : described.globals()) {
    v1::GlobalInfo* info = module->add_global_infos();
    info->set_name(global.name());
    info->set_target(target);
    info->set_size_bytes(global.size());
    info->set_constant(global.constant());
    info->set_data_type(static_cast<v1::DataType>(global.dtype()));
    for (const wire::GlobalAttributes& found : loaded.globals()) {
      if (found.name() == global.name()) info->set_size_bytes(found.size());
    }
  }
}

}  // namespace

Modules::Modules(Core* core, Scheduler* scheduler)
    : core_(core),
      scheduler_(scheduler),
      table_(core, kModules, &identity::Quota::modules, recovery::Kind::kModule, /*definition=*/0,
             [](GlobalTransaction&, const recovery::ModuleRecord& record) -> std::optional<Value> {
               auto module = std::make_shared<v1::Module>();
               if (!module->ParseFromString(record.module())) return std::nullopt;
               return Value{.message = std::move(module)};
             }) {}

int64_t Modules::Value::Cost() const { return CostOf(*message); }

void Modules::Value::WriteTo(recovery::ModuleRecord* record) const {
  message->SerializeToString(record->mutable_module());
}

absl::StatusOr<v1::Module> Modules::Create(const TenantId& tenant,
                                           const v1::CreateModuleRequest& request,
                                           SteadyTime deadline) {
  if (absl::Status status = kModules.CheckParent(request.parent(), tenant); !status.ok())
    return status;
  auto source = SourceOf(request.module(), "module.");
  if (!source.ok()) return source.status();
  if (absl::Status status = ops::CheckCompilerOptions(source->options(), "module.options");
      !status.ok())
    return status;
  if (absl::Status status = CheckGlobals(source->globals()); !status.ok()) return status;
  std::string id = request.module_id();
  if (id.empty()) {
    // The same code for another kind of device is another module.
    std::string content = absl::StrCat(source->SerializeAsString(), request.device_kind());
    id = absl::StrFormat("m-%016x", absl::Hash<std::string>{}(content));
  } else if (absl::Status status = kModules.CheckId(id); !status.ok()) {
    return status;
  }
  // A module without an id of its own may exist already. The charge before compilation is the least
  // that the module will cost.
  std::shared_ptr<const v1::Module> existing;
  auto reservation = table_.Reserve(tenant, id, CostOf(request.module()), deadline,
                                    request.module_id().empty() ? &existing : nullptr);
  if (!reservation.ok()) return reservation.status();
  if (existing != nullptr) return AnswerOf(*existing);
  auto built = Build(tenant, request, *source, id, deadline);
  if (!built.ok()) return built.status();
  const auto module = std::make_shared<const v1::Module>(*std::move(built));
  table_.Add(*std::move(reservation), {.message = module});
  return AnswerOf(*module);
}

void Modules::Restore(GlobalTransaction& transaction, uint64_t id,
                      const recovery::ModuleRecord& record) {
  table_.Restore(transaction, id, record);
}

absl::StatusOr<v1::Module> Modules::Build(const TenantId& tenant,
                                          const v1::CreateModuleRequest& request,
                                          const wire::Source& source, const std::string& id,
                                          SteadyTime deadline) {
  v1::Module module = request.module();
  module.clear_kernels();
  module.clear_global_infos();
  module.clear_log();
  module.clear_omitted();
  module.set_name(kModules.NameOf(tenant, id));
  SetTimestamp(core_->Now(), module.mutable_create_time());
  wire::Code code;
  *code.mutable_source() = source;
  std::set<std::string> targets;
  const bool cuda_only = source.kind() != wire::Source::KIND_CUDA_CPP;
  const auto& devices = core_->broker->devices();
  for (size_t i = 0; i < devices.size(); ++i) {
    if (!request.device_kind().empty() && devices[i].kind() != request.device_kind()) continue;
    if (cuda_only && devices[i].kind() != "cuda") continue;
    if (!targets.insert(devices[i].target()).second) continue;
    absl::Status status = AddKernels(tenant, static_cast<int>(i), code, deadline, &module);
    if (!status.ok()) return PrefixField(status, "module.");
  }
  if (targets.empty() && cuda_only &&
      (request.device_kind().empty() || request.device_kind() == "cuda")) {
    return NotImplemented(
        "cuda code", "no device here can run this module: PTX and binaries need one of kind: cuda");
  }
  if (targets.empty()) {
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DEVICE_NOT_SERVING,
                     absl::StrCat("no device here can run this module; device kind: ",
                                  request.device_kind().empty() ? "cuda" : request.device_kind()));
  }
  return module;
}

absl::Status Modules::AddKernels(const TenantId& tenant, int device, const wire::Code& code,
                                 SteadyTime deadline, v1::Module* module) {
  using Compiled = std::shared_ptr<const broker::CompiledModule>;
  const std::string& target = core_->broker->devices()[device].target();
  auto compiled = std::make_shared<Promise<Compiled>>();
  core_->broker->compiler().Compile(
      tenant, target, code,
      [compiled](absl::StatusOr<Compiled> result) { compiled->Set(std::move(result)); });
  auto result = compiled->Wait(deadline);
  if (!result.ok()) return AtModule(result.status(), code.source());
  absl::StrAppend(module->mutable_log(), (*result)->log);

  // Registers and occupancy are known only to a worker that loaded the code.
  DeviceQueue* queue;
  {
    TenantTransaction transaction(*core_, tenant);
    queue = &scheduler_->queues().Get(transaction, tenant, device);
  }
  const WorkerInUse in_use(core_, queue);
  auto worker = scheduler_->starter().BlockingWorker(*queue, nullptr, deadline);
  if (!worker.ok()) return worker.status();
  auto attributes = Attributes(*queue, *worker, **result, deadline);
  if (!attributes.ok()) return attributes.status();
  if (attributes->status().code() != 0) {
    return InvalidField(
        v1::ERROR_REASON_COMPILE_FAILED, "code",
        absl::StrCat("the device refused the code: ", attributes->status().message()));
  }
  for (const auto& kernel : (*result)->description.kernels()) {
    v1::KernelInfo info = KernelInfoOf(kernel, target);
    for (const auto& measured : attributes->kernels()) {
      if (measured.entry() != kernel.entry()) continue;
      info.set_max_threads_per_block(measured.max_threads_per_block());
      info.set_shared_bytes(measured.shared_bytes());
      if (core_->broker->devices()[device].kind() == "cpu") continue;
      info.set_registers(measured.registers());
      info.set_local_bytes(measured.local_bytes());
      info.set_constant_bytes(measured.constant_bytes());
      info.set_max_active_blocks(measured.max_active_blocks());
    }
    *module->add_kernels() = std::move(info);
  }
  AddGlobals((*result)->description, *attributes, target, module);
  return absl::OkStatus();
}

absl::StatusOr<wire::ModuleLoaded> Modules::Attributes(
    DeviceQueue& queue, const std::shared_ptr<broker::Worker>& worker,
    const broker::CompiledModule& compiled, SteadyTime deadline) {
  uint64_t id = compiled.id;
  bool load;
  {
    TenantTransaction transaction(*core_, queue.tenant);
    load = queue.worker == worker && queue.contents.modules.insert(id).second;
  }
  if (load) {
    // A failure means that the worker is gone, which ends the wait below.
    worker
        ->LoadModule(compiled,
                     [this, queue = &queue, worker, id](absl::StatusOr<wire::ModuleLoaded> reply) {
                       GlobalTransaction transaction(*core_);
                       if (queue->worker != worker || !reply.ok()) return;
                       queue->contents.attributes[id] = *std::move(reply);
                       ++queue->contents.num_answers;
                     })
        .IgnoreError();
  }
  GlobalTransaction transaction(*core_);
  ++queue.contents.num_waiting;
  bool in_time = true;
  while (in_time && queue.worker == worker && queue.contents.attributes.count(id) == 0) {
    const uint64_t seen = queue.contents.num_answers;
    auto changed = [&] { return queue.contents.num_answers != seen || queue.worker != worker; };
    in_time = transaction.Await(absl::Condition(&changed), deadline);
  }
  --queue.contents.num_waiting;
  if (!in_time) {
    return MakeError(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE,
                     "the deadline passed while the device loaded the module");
  }
  if (queue.worker == worker) return queue.contents.attributes[id];
  return TryLater(absl::StatusCode::kUnavailable, v1::ERROR_REASON_WORKER_LOST,
                  "the device process was lost; try again", absl::Milliseconds(200));
}

absl::StatusOr<v1::Module> Modules::Get(const TenantId& tenant, const std::string& name) {
  const auto module = table_.Get(tenant, name);
  if (!module.ok()) return module.status();
  return AnswerOf(**module);
}

absl::StatusOr<v1::ListModulesResponse> Modules::List(const TenantId& tenant,
                                                      const v1::ListModulesRequest& request) {
  v1::ListModulesResponse response;
  auto write = [](const v1::Module& module, v1::Module* listed) {
    OmittedInModuleLists().CopyWithout(module, listed);
    OmittedInModules().Fit(listed);
  };
  absl::Status status = table_.List(tenant, request, write, response.mutable_modules(),
                                    response.mutable_next_page_token());
  if (!status.ok()) return status;
  return response;
}

absl::Status Modules::Delete(const TenantId& tenant, const std::string& name) {
  return table_.Delete(tenant, name);
}

absl::StatusOr<wire::Source> Modules::Find(TenantTransaction& transaction, const TenantId& tenant,
                                           const std::string& name) const {
  const auto id = kModules.IdOf(name, tenant, "kernel_launch.module");
  if (!id.ok()) return id.status();
  const auto* entry = table_.Find(transaction, tenant, *id);
  if (entry == nullptr) return kModules.NotFound(name);
  return SourceOf(*entry->value.message, "");
}

}  // namespace stride::engine
