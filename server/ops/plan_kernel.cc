#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/compiler_options.h"
#include "server/ops/kernel_aggregate.h"
#include "server/ops/kernel_texture.h"
#include "server/ops/operation_kind.h"
#include "server/ops/shape.h"

namespace stride::ops {
namespace {

// CUDA's limits for every device since compute capability 3.0; the CPU device has the same.
constexpr uint32_t kMaxThreads = 1024;
constexpr uint64_t kMaxBlock[] = {1024, 1024, 64};
constexpr uint64_t kMaxGrid[] = {(uint64_t{1} << 31) - 1, 65535, 65535};
constexpr uint32_t kMaxSharedBytes = 227 << 10;
constexpr int kMaxArguments = 1024;
constexpr int kMaxGlobals = 256;
// A task travels to its worker in one packet.
constexpr size_t kMaxGlobalBytes = 32 << 10;

struct Extents {
  uint32_t x, y, z;
};

// Unset members count as 1.
Extents Read(bool present, const v1::Dim3& dim) {
  auto one = [](uint32_t extent) { return extent == 0 ? 1 : extent; };
  if (!present) return {1, 1, 1};
  return {one(dim.x()), one(dim.y()), one(dim.z())};
}

absl::Status CheckExtents(const Extents& extents, const uint64_t (&limits)[3],
                          const std::string& field) {
  const uint32_t values[] = {extents.x, extents.y, extents.z};
  for (int i = 0; i < 3; ++i) {
    if (values[i] <= limits[i]) continue;
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, absl::StrCat(field, ".", std::string(1, "xyz"[i])),
        absl::StrCat("the extent is too large: ", values[i], ", at most ", limits[i]));
  }
  return absl::OkStatus();
}

absl::Status CheckGeometry(const v1::KernelLaunch& launch, const Extents& grid,
                           const Extents& block) {
  if (auto status = CheckExtents(grid, kMaxGrid, "kernel_launch.grid"); !status.ok()) return status;
  if (auto status = CheckExtents(block, kMaxBlock, "kernel_launch.block"); !status.ok())
    return status;
  uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads > kMaxThreads) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, "kernel_launch.block",
        absl::StrCat("a block has at most ", kMaxThreads, " threads; this one has ", threads));
  }
  if (launch.shared_memory_bytes() > kMaxSharedBytes) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, "kernel_launch.shared_memory_bytes",
        absl::StrCat("a block has at most ", kMaxSharedBytes, " bytes of shared memory; ",
                     launch.shared_memory_bytes(), " were asked for"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<wire::Code>> ReadCode(const v1::KernelLaunch& launch) {
  if (launch.code_case() == v1::KernelLaunch::kModule) return std::optional<wire::Code>();
  if (launch.code_case() != v1::KernelLaunch::kSource && !launch.options().empty()) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "kernel_launch.options",
                        "compiler options need source");
  }
  wire::Code code;
  auto* source = code.mutable_source();
  switch (launch.code_case()) {
    case v1::KernelLaunch::kSource: {
      auto status = CheckCompilerOptions(launch.options(), "kernel_launch.options");
      if (!status.ok()) return status;
      source->set_kind(wire::Source::KIND_CUDA_CPP);
      source->set_text(launch.source());
      *source->mutable_options() = launch.options();
      break;
    }
    case v1::KernelLaunch::kPtx:
      source->set_kind(wire::Source::KIND_PTX);
      source->set_text(launch.ptx());
      break;
    case v1::KernelLaunch::kBinary:
      source->set_kind(wire::Source::KIND_BINARY);
      source->set_text(launch.binary());
      break;
    default:
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "kernel_launch",
                          "the code is missing; give source, ptx, binary or module");
  }
  if (source->text().empty()) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "kernel_launch", "the code is empty");
  }
  source->add_entries(launch.entry());
  // In one order, so that launches that set the same variables share their code.
  std::set<std::string> globals;
  for (const v1::GlobalVariable& global : launch.globals()) globals.insert(global.name());
  for (const std::string& name : globals) source->add_globals(name);
  return std::optional<wire::Code>(std::move(code));
}

std::string ArgumentField(int i) { return absl::StrCat("kernel_launch.arguments[", i, "]"); }

absl::Status CheckArray(const Input& input, const std::string& field) {
  if (!input) return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field, "the array is missing");
  if (input->IsContiguous()) return absl::OkStatus();
  return InvalidField(
      v1::ERROR_REASON_SHAPE_MISMATCH, field,
      "a kernel sees plain memory, so its arrays must be contiguous; copy this view first");
}

// Takes the launch's arrays in their order: existing ones are checked, new ones described.
class ArrayPlanner {
 public:
  ArrayPlanner(Inputs inputs, absl::Span<const Input> existing, Plan* plan)
      : inputs_(inputs), existing_(existing), plan_(*plan) {}

  absl::Status Existing(const std::string& field) {
    const Input& input = inputs_[num_arrays_++];
    if (auto status = CheckArray(input, field); !status.ok()) return status;
    plan_.bytes += static_cast<double>(input->size_bytes());
    return absl::OkStatus();
  }

  absl::Status New(const v1::NewArray& wanted, const std::string& field) {
    size_t j = plan_.outputs.size();
    if (j < existing_.size() && existing_[j]) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, absl::StrCat(field, ".output.existing"),
                          "a new array cannot exist already; pass it as `array`");
    }
    auto array = ReadSpec(wanted.spec(), absl::StrCat(field, ".spec"));
    if (!array.ok()) return array.status();
    plan_.zeroed_outputs.push_back(static_cast<int>(j));
    plan_.bytes += static_cast<double>(array->size_bytes());
    plan_.outputs.push_back(*std::move(array));
    return absl::OkStatus();
  }

  absl::Status Texture(const v1::Texture& texture, const std::string& field) {
    const Input& input = inputs_[num_arrays_];
    if (auto status = Existing(field + ".texture.array"); !status.ok()) return status;
    return ReadTexture(texture, *input, field).status();
  }

  absl::Status Members(const v1::KernelArgument::Aggregate& aggregate, const std::string& field) {
    if (auto status = CheckAggregate(aggregate, field); !status.ok()) return status;
    for (int m = 0; m < aggregate.members_size(); ++m) {
      const auto& member = aggregate.members(m);
      const std::string at = absl::StrCat(field, ".aggregate.members[", m, "]");
      absl::Status status;
      if (member.has_array()) status = Existing(at + ".array");
      if (member.has_new_array()) status = New(member.new_array(), at + ".new_array");
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  const Inputs inputs_;
  const absl::Span<const Input> existing_;
  Plan& plan_;
  size_t num_arrays_ = 0;
};

absl::Status PlanArgument(const v1::KernelArgument& argument, const std::string& field,
                          ArrayPlanner* arrays) {
  switch (argument.value_case()) {
    case v1::KernelArgument::kArray:
      return arrays->Existing(field + ".array");
    case v1::KernelArgument::kNewArray:
      return arrays->New(argument.new_array(), field + ".new_array");
    case v1::KernelArgument::kAggregate:
      return arrays->Members(argument.aggregate(), field);
    case v1::KernelArgument::kTexture:
      return arrays->Texture(argument.texture(), field);
    case v1::KernelArgument::VALUE_NOT_SET:
      return InvalidField(
          v1::ERROR_REASON_INVALID_FIELD, field,
          "the argument is empty: array, new_array, scalar, raw, aggregate or texture");
    default:
      return absl::OkStatus();
  }
}

absl::Status PlanGlobals(const v1::KernelLaunch& launch, ArrayPlanner* arrays) {
  std::set<std::string> names;
  size_t num_raw = 0;
  for (int i = 0; i < launch.globals_size(); ++i) {
    const v1::GlobalVariable& global = launch.globals(i);
    const std::string field = absl::StrCat("kernel_launch.globals[", i, "]");
    if (global.name().empty()) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field + ".name",
                          "the variable's name is missing");
    }
    if (!names.insert(global.name()).second) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field + ".name",
                          absl::StrCat("the variable is set twice: ", global.name()));
    }
    if (global.value_case() == v1::GlobalVariable::VALUE_NOT_SET) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                          "the value is missing: array, scalar or raw");
    }
    num_raw += global.raw().size();
    if (num_raw > kMaxGlobalBytes) {
      return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, field + ".raw",
                          absl::StrCat("a launch carries at most ", kMaxGlobalBytes,
                                       " raw bytes for its variables; pass more as an array"));
    }
    if (!global.has_array()) continue;
    if (auto status = arrays->Existing(field + ".array"); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

std::string RequiredKind(const wire::Code& code) {
  const bool any = !code.has_source() || code.source().kind() == wire::Source::KIND_CUDA_CPP;
  return any ? "" : "cuda";
}

absl::StatusOr<Plan> PlanKernel(const v1::KernelLaunch& launch, Inputs inputs,
                                absl::Span<const Input> existing) {
  if (launch.entry().empty()) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "kernel_launch.entry",
                        "the kernel's name is missing");
  }
  Extents grid = Read(launch.has_grid(), launch.grid());
  Extents block = Read(launch.has_block(), launch.block());
  if (auto status = CheckGeometry(launch, grid, block); !status.ok()) return status;
  Plan plan;
  auto code = ReadCode(launch);
  if (!code.ok()) return code.status();
  if (code->has_value()) plan.required_kind = RequiredKind(**code);
  plan.code = *std::move(code);
  ArrayPlanner arrays(inputs, existing, &plan);
  for (int i = 0; i < launch.arguments_size(); ++i) {
    auto status = PlanArgument(launch.arguments(i), ArgumentField(i), &arrays);
    if (!status.ok()) return status;
  }
  if (auto status = PlanGlobals(launch, &arrays); !status.ok()) return status;
  auto* task = plan.task.mutable_kernel();
  task->set_entry(launch.entry());
  for (uint32_t extent : {grid.x, grid.y, grid.z}) task->add_grid(extent);
  for (uint32_t extent : {block.x, block.y, block.z}) task->add_block(extent);
  task->set_dynamic_shared_bytes(launch.shared_memory_bytes());
  task->set_cooperative(launch.cooperative());
  return plan;
}

namespace {

void AddLaunchOperands(const v1::Operation& operation, OperandList& list) {
  for (const v1::KernelArgument& argument : operation.kernel_launch().arguments()) {
    if (argument.has_array()) list.Add(argument.array());
    for (const auto& member : argument.aggregate().members()) {
      if (member.has_array()) list.Add(member.array());
    }
    if (argument.has_texture()) list.Add(argument.texture().array());
  }
  for (const v1::GlobalVariable& global : operation.kernel_launch().globals()) {
    if (global.has_array()) list.Add(global.array());
  }
}

void AddLaunchOutputs(const v1::Operation& operation, OutputList& list) {
  for (const v1::KernelArgument& argument : operation.kernel_launch().arguments()) {
    if (argument.has_new_array()) list.push_back(&argument.new_array().output());
    for (const auto& member : argument.aggregate().members()) {
      if (member.has_new_array()) list.push_back(&member.new_array().output());
    }
  }
}

void CheckLaunchLists(const v1::Operation& operation, ListLimits& limits) {
  constexpr int kMaxOptions = 256;
  const v1::KernelLaunch& launch = operation.kernel_launch();
  // CUDA passes at most 32,764 bytes of parameters.
  limits.Check("kernel_launch.arguments", launch.arguments_size(), kMaxArguments);
  limits.Check("kernel_launch.globals", launch.globals_size(), kMaxGlobals);
  limits.Check("kernel_launch.options", launch.options_size(), kMaxOptions);
  for (int i = 0; limits.status().ok() && i < launch.arguments_size(); ++i) {
    const int members = launch.arguments(i).aggregate().members_size();
    if (members > kMaxArguments)
      limits.Check(ArgumentField(i) + ".aggregate.members", members, kMaxArguments);
  }
}

void AddExtents(const v1::Dim3& extents, KeyWriter& key) {
  key.Add(extents.x());
  key.Add(extents.y());
  key.Add(extents.z());
}

// Values of numbers are no part of the plan: they are bound to the task. Plans of launches with
// structs, textures, variables or new arrays depend on more.
bool LaunchKey(const OperationView& operation, const TenantId& tenant, KeyWriter& key) {
  const v1::KernelLaunch& launch = operation->kernel_launch();
  if (launch.globals_size() > 0) return false;
  for (const v1::KernelArgument& argument : launch.arguments()) {
    if (!argument.has_array() && !argument.has_scalar()) return false;
  }
  key.AddText(tenant.value);
  key.Add(launch.code_case());
  key.AddText(launch.source());
  key.AddText(launch.ptx());
  key.AddText(launch.binary());
  key.AddText(launch.module());
  key.Add(launch.options_size());
  for (const std::string& option : launch.options()) key.AddText(option);
  key.AddText(launch.entry());
  key.Add(launch.has_grid());
  AddExtents(launch.grid(), key);
  key.Add(launch.has_block());
  AddExtents(launch.block(), key);
  key.Add(launch.shared_memory_bytes());
  key.Add(launch.cooperative());
  key.Add(launch.arguments_size());
  for (const v1::KernelArgument& argument : launch.arguments()) key.Add(argument.value_case());
  return true;
}

absl::StatusOr<Plan> PlanLaunch(const v1::Operation& operation, Inputs inputs,
                                absl::Span<const Input> existing, const FunctionTable*) {
  if (operation.outputs().empty()) return PlanKernel(operation.kernel_launch(), inputs, existing);
  return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, "outputs",
                      "a kernel's outputs are among its arguments; leave outputs empty");
}

}  // namespace

const OperationKind kKernelLaunchKind = {
    .name = "kernel_launch",
    .detail = [](const v1::Operation& o) -> std::string { return o.kernel_launch().entry(); },
    .operands = AddLaunchOperands,
    .outputs = AddLaunchOutputs,
    .plan = PlanLaunch,
    .rules = {ListedResults, LaunchKey, NoBatching, Undivided},
    .lists = CheckLaunchLists,
};

}  // namespace stride::ops
