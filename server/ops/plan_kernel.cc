#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/compiler_options.h"
#include "server/ops/planners.h"
#include "server/ops/shape.h"

namespace stride::ops {
namespace {

// CUDA's limits for every device since compute capability 3.0; the CPU device has the same.
constexpr uint32_t kMaxThreads = 1024;
constexpr uint64_t kMaxBlock[] = {1024, 1024, 64};
constexpr uint64_t kMaxGrid[] = {(uint64_t{1} << 31) - 1, 65535, 65535};
constexpr uint32_t kMaxSharedBytes = 227 << 10;
constexpr int kMaxArguments = 1024;

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
  return std::optional<wire::Code>(std::move(code));
}

std::string ArgumentField(int i) { return absl::StrCat("kernel_launch.arguments[", i, "]"); }

absl::Status CheckArray(const Input& input, const std::string& field) {
  if (!input)
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field, "the argument's array is missing");
  if (input->IsContiguous()) return absl::OkStatus();
  return InvalidField(
      v1::ERROR_REASON_SHAPE_MISMATCH, field,
      "a kernel sees plain memory, so its arrays must be contiguous; copy this view first");
}

// Arrays of the launch: existing ones are checked, new ones described.
absl::Status PlanArguments(const v1::KernelLaunch& launch, Inputs inputs,
                           absl::Span<const Input> existing, Plan* plan) {
  size_t num_arrays = 0;
  for (int i = 0; i < launch.arguments_size(); ++i) {
    const v1::KernelArgument& argument = launch.arguments(i);
    if (argument.value_case() == v1::KernelArgument::kArray) {
      const Input& input = inputs[num_arrays++];
      if (auto status = CheckArray(input, absl::StrCat(ArgumentField(i), ".array")); !status.ok())
        return status;
      plan->bytes += static_cast<double>(input->size_bytes());
    } else if (argument.value_case() == v1::KernelArgument::kNewArray) {
      size_t j = plan->outputs.size();
      std::string field = absl::StrCat(ArgumentField(i), ".new_array");
      if (j < existing.size() && existing[j]) {
        return InvalidField(v1::ERROR_REASON_INVALID_FIELD, absl::StrCat(field, ".output.existing"),
                            "a new array cannot exist already; pass it as `array`");
      }
      auto array = ReadSpec(argument.new_array().spec(), absl::StrCat(field, ".spec"));
      if (!array.ok()) return array.status();
      plan->zeroed_outputs.push_back(static_cast<int>(j));
      plan->bytes += static_cast<double>(array->size_bytes());
      plan->outputs.push_back(*std::move(array));
    } else if (argument.value_case() == v1::KernelArgument::VALUE_NOT_SET) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, ArgumentField(i),
                          "the argument is empty: array, new_array, scalar or raw");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Plan> PlanKernel(const v1::KernelLaunch& launch, Inputs inputs,
                                absl::Span<const Input> existing) {
  if (launch.entry().empty()) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "kernel_launch.entry",
                        "the kernel's name is missing");
  }
  if (launch.arguments_size() > kMaxArguments) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, "kernel_launch.arguments",
        absl::StrCat("too many arguments: ", launch.arguments_size(), ", at most ", kMaxArguments));
  }
  Extents grid = Read(launch.has_grid(), launch.grid());
  Extents block = Read(launch.has_block(), launch.block());
  if (auto status = CheckGeometry(launch, grid, block); !status.ok()) return status;
  Plan plan;
  auto code = ReadCode(launch);
  if (!code.ok()) return code.status();
  plan.code = *std::move(code);
  if (auto status = PlanArguments(launch, inputs, existing, &plan); !status.ok()) return status;
  auto* task = plan.task.mutable_kernel();
  task->set_entry(launch.entry());
  for (uint32_t extent : {grid.x, grid.y, grid.z}) task->add_grid(extent);
  for (uint32_t extent : {block.x, block.y, block.z}) task->add_block(extent);
  task->set_dynamic_shared_bytes(launch.shared_memory_bytes());
  plan.task.set_label(launch.entry());
  return plan;
}

}  // namespace stride::ops
