#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cpucuda/cpucuda.h"
#include "server/worker/cpu/lower/kernel_texture.h"
#include "server/worker/cpu/lower/lowering.h"
#include "server/worker/cpu/lower/scratch.h"

namespace stride::cpu {
namespace {

// CUDA's own bound on a kernel's parameters.
constexpr uint64_t kMaxParameterBytes = 32764;

absl::StatusOr<uint64_t> ParameterBytes(const wire::KernelDescription& kernel) {
  uint64_t bytes = 0;
  for (const wire::Parameter& parameter : kernel.parameters()) {
    bytes = std::max(bytes, uint64_t{parameter.offset()} + parameter.size());
  }
  if (bytes <= kMaxParameterBytes) return bytes;
  return absl::InvalidArgumentError(
      absl::StrCat("the kernel's parameters are too large, in bytes: ", bytes));
}

// Stores one argument at the kernel's offset. Pointers become Places.
absl::Status PutArgument(const LoweringContext& context, const wire::Parameter& parameter,
                         const wire::KernelArgument& argument, std::byte* to, Place* place) {
  if (argument.has_array()) {
    if (parameter.size() != sizeof(uint64_t)) {
      return absl::InvalidArgumentError("an array is given for a parameter that is no pointer");
    }
    auto found = context.arenas->Bytes(argument.array().arena(), argument.array().offset(), 0);
    if (!found.ok()) return found.status();
    *place = *std::move(found);
    uint64_t address = place->bits();
    std::memcpy(to, &address, sizeof(address));
    return absl::OkStatus();
  }
  const std::string& raw = argument.has_aggregate() ? argument.aggregate().raw() : argument.raw();
  if (raw.size() != parameter.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an argument has ", raw.size(), " bytes, its parameter ", parameter.size()));
  }
  std::memcpy(to, raw.data(), raw.size());
  return absl::OkStatus();
}

// Stores the pointers within a struct at `to`.
absl::Status PutPointers(const LoweringContext& context,
                         const wire::KernelArgument::Aggregate& aggregate, std::byte* to,
                         std::vector<Place>* kept) {
  for (const auto& pointer : aggregate.pointers()) {
    if (uint64_t{pointer.offset()} + sizeof(uint64_t) > aggregate.raw().size()) {
      return absl::InvalidArgumentError("a struct's pointer lies outside it");
    }
    auto found = context.arenas->Bytes(pointer.array().arena(), pointer.array().offset(), 0);
    if (!found.ok()) return found.status();
    uint64_t address = found->bits();
    std::memcpy(to + pointer.offset(), &address, sizeof(address));
    kept->push_back(*std::move(found));
  }
  return absl::OkStatus();
}

// Textures of a launch, values for its module's variables, and the memory of these bytes.
struct LaunchValues {
  std::vector<std::unique_ptr<const cpucuda::Texture>> textures;
  std::vector<ModuleGlobals::Value> values;
  std::vector<Place> places;
  std::vector<std::unique_ptr<const std::string>> texts;
};

// The handle of a texture, which points to its description.
absl::Status PutTexture(const LoweringContext& context, const wire::Parameter& parameter,
                        const wire::Texture& texture, std::byte* to, LaunchValues* kept) {
  if (parameter.size() != sizeof(uint64_t)) {
    return absl::InvalidArgumentError(
        "a texture is given for a parameter that is no cudaTextureObject_t");
  }
  kept->places.emplace_back();
  auto made = MakeTexture(*context.arenas, texture, &kept->places.back());
  if (!made.ok()) return made.status();
  kept->textures.push_back(std::make_unique<const cpucuda::Texture>(*made));
  const uint64_t handle = reinterpret_cast<uint64_t>(kept->textures.back().get());
  std::memcpy(to, &handle, sizeof(handle));
  return absl::OkStatus();
}

absl::Status TakeGlobal(const LoweringContext& context, ModuleGlobals& globals,
                        const wire::GlobalValue& value, LaunchValues* out) {
  ModuleGlobals::Global* global = globals.FindGlobal(value.name());
  if (global == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("the module has no variable ", value.name()));
  }
  const uint64_t size = value.has_array() ? value.size() : value.raw().size();
  if (size > global->description.size()) {
    return absl::InvalidArgumentError(absl::StrCat("a value of ", size, " bytes is longer than `",
                                                   value.name(), "`, which has ",
                                                   global->description.size()));
  }
  const std::byte* bytes;
  if (value.has_array()) {
    auto found = context.arenas->Bytes(value.array().arena(), value.array().offset(), size);
    if (!found.ok()) return found.status();
    bytes = found->address;
    out->places.push_back(*std::move(found));
  } else {
    out->texts.push_back(std::make_unique<const std::string>(value.raw()));
    bytes = reinterpret_cast<const std::byte*>(out->texts.back()->data());
  }
  out->values.push_back({global, bytes, size});
  return absl::OkStatus();
}

absl::StatusOr<cpucuda::Dim3> ReadDim3(const google::protobuf::RepeatedField<uint32_t>& values) {
  if (values.size() != 3) return absl::InternalError("a grid or block has not three extents");
  return cpucuda::Dim3{values[0], values[1], values[2]};
}

absl::Status RunKernel(cpucuda::ThreadPool& pool, const cpucuda::KernelEntry& entry,
                       const cpucuda::LaunchConfig& config, const void* parameters,
                       PrintedText* printed) {
  absl::Status status =
      cpucuda::Launch(pool, entry, config, parameters, /*cancel=*/nullptr, printed);
  // The launcher's word for an assert or a trap; to a client that is a fault of the kernel.
  if (absl::IsAborted(status)) return absl::FailedPreconditionError(status.message());
  return status;
}

}  // namespace

absl::StatusOr<Work> LowerKernel(const LoweringContext& context, const wire::KernelLaunch& launch) {
  auto module = FindModule(context, launch.module());
  if (!module.ok()) return module.status();
  const LoadedModule::Kernel* kernel = (*module)->FindKernel(launch.entry());
  if (kernel == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("the module has no kernel ", launch.entry()));
  }
  cpucuda::LaunchConfig config;
  auto grid = ReadDim3(launch.grid());
  if (!grid.ok()) return grid.status();
  auto block = ReadDim3(launch.block());
  if (!block.ok()) return block.status();
  config.grid = *grid;
  config.block = *block;
  config.dynamic_shared_bytes = launch.dynamic_shared_bytes();
  config.cooperative = launch.cooperative();
  if (absl::Status s = cpucuda::CheckLaunch(kernel->entry, config); !s.ok()) return s;

  int num_parameters = kernel->description.parameters_size();
  if (launch.arguments_size() != num_parameters) {
    return absl::InvalidArgumentError(absl::StrCat("the kernel takes ", num_parameters,
                                                   " arguments, given: ", launch.arguments_size()));
  }
  auto bytes = ParameterBytes(kernel->description);
  if (!bytes.ok()) return bytes.status();
  std::shared_ptr<std::byte> parameters(AllocateScratch(*bytes + 1).release(), FreeDeleter());
  if (!parameters) return absl::ResourceExhaustedError("no memory for a launch's parameters");
  Work work;
  work.operands.resize(num_parameters);
  auto extra = std::make_shared<LaunchValues>();
  for (int i = 0; i < num_parameters; ++i) {
    const wire::Parameter& parameter = kernel->description.parameters(i);
    const wire::KernelArgument& argument = launch.arguments(i);
    std::byte* const to = parameters.get() + parameter.offset();
    absl::Status s = argument.has_texture()
                         ? PutTexture(context, parameter, argument.texture(), to, extra.get())
                         : PutArgument(context, parameter, argument, to, &work.operands[i]);
    if (s.ok() && argument.has_aggregate())
      s = PutPointers(context, argument.aggregate(), to, &extra->places);
    if (!s.ok()) return s;
  }
  for (const wire::GlobalValue& value : launch.globals()) {
    absl::Status s = TakeGlobal(context, (*module)->globals(), value, extra.get());
    if (!s.ok()) return s;
  }
  work.kernel = kernel->entry.name;
  work.run = [pool = context.pool, module = *module, kernel, config, parameters, extra,
              printed = context.printed] {
    module->globals().Set(extra->values);
    return RunKernel(*pool, kernel->entry, config, parameters.get(), printed);
  };
  return work;
}

}  // namespace stride::cpu
