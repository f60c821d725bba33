#include "server/worker/cuda/driver/kernel_module.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/worker/cuda/driver/cuda_status.h"
#include "server/worker/cuda/driver/grid_barrier.h"

namespace stride::cuda {
namespace {

// More dynamic shared memory per block needs an opt-in.
constexpr int kPlainSharedBytes = 48 << 10;

absl::Status ReadParameters(const Driver& driver, const wire::KernelDescription& description,
                            Kernel* kernel) {
  if (driver.cuFuncGetParamInfo == nullptr) {
    if (!description.parameters_known()) {
      return absl::UnimplementedError(
          "the parameters of PTX and binary kernels are known to drivers of CUDA 12.4 and later");
    }
    for (const wire::Parameter& p : description.parameters()) {
      kernel->parameters.push_back({p.offset(), p.size()});
    }
    return absl::OkStatus();
  }
  size_t offset = 0, size = 0;
  for (size_t i = 0; driver.cuFuncGetParamInfo(kernel->function, i, &offset, &size) == CUDA_SUCCESS;
       ++i) {
    kernel->parameters.push_back({offset, size});
  }
  return absl::OkStatus();
}

// The compiler's description must equal the device's layout; otherwise arguments would be checked
// against the one and laid out for the other.
absl::Status CompareParameters(const wire::KernelDescription& description, const Kernel& kernel) {
  if (!description.parameters_known()) return absl::OkStatus();
  bool same = static_cast<size_t>(description.parameters_size()) == kernel.parameters.size();
  for (int i = 0; same && i < description.parameters_size(); ++i) {
    same = description.parameters(i).offset() == kernel.parameters[i].offset &&
           description.parameters(i).size() == kernel.parameters[i].size;
  }
  if (same) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("parameters of `", description.entry(),
                                          "` differ from what the compiler described"));
}

absl::Status ReadAttributes(const Driver& driver, Kernel* kernel) {
  absl::Status status;
  auto read = [&](CUfunction_attribute attribute) {
    int value = 0;
    status.Update(ToStatus(driver.cuFuncGetAttribute(&value, attribute, kernel->function),
                           "reading a kernel's attributes"));
    return value;
  };
  kernel->max_threads = read(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  kernel->static_shared_bytes = read(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  kernel->dynamic_shared_limit = std::max(0, kPlainSharedBytes - kernel->static_shared_bytes);
  wire::KernelAttributes& attributes = kernel->attributes;
  attributes.set_entry(kernel->entry);
  attributes.set_registers(read(CU_FUNC_ATTRIBUTE_NUM_REGS));
  attributes.set_shared_bytes(kernel->static_shared_bytes);
  attributes.set_local_bytes(read(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  attributes.set_constant_bytes(read(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
  attributes.set_max_threads_per_block(kernel->max_threads);
  int blocks = 0;
  if (driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel->function,
                                                         kernel->max_threads, 0) == CUDA_SUCCESS) {
    attributes.set_max_active_blocks(blocks);
  }
  return status;
}

absl::Status Describe(const Driver& driver, const Module& module,
                      const wire::KernelDescription& description, Kernel* kernel) {
  absl::StatusOr<CUfunction> function = module.Function(description.symbol().c_str());
  if (!function.ok()) return function.status();
  kernel->function = *function;
  // The driver would otherwise load the code at the first launch, after a wait for running kernels.
  if (driver.cuFuncLoad != nullptr) {
    STRIDE_CUDA_RETURN(driver.cuFuncLoad(*function), "loading a kernel");
  }
  kernel->entry = description.entry();
  if (absl::Status status = ReadParameters(driver, description, kernel); !status.ok()) {
    return status;
  }
  if (absl::Status status = CompareParameters(description, *kernel); !status.ok()) return status;
  return ReadAttributes(driver, kernel);
}

absl::Status Beyond(std::string_view what, uint64_t asked, uint64_t limit) {
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(what), " of ", asked, " is beyond the limit of ", limit));
}

}  // namespace

absl::StatusOr<KernelModule> KernelModule::Load(const Driver& driver, const void* image,
                                                const wire::ModuleDescription& description) {
  KernelModule loaded;
  absl::StatusOr<Module> module = Module::Load(driver, image);
  if (!module.ok()) return module.status();
  loaded.module_ = *std::move(module);
  for (const wire::KernelDescription& row : description.kernels()) {
    Kernel kernel;
    if (absl::Status status = Describe(driver, loaded.module_, row, &kernel); !status.ok()) {
      return status;
    }
    loaded.kernels_.emplace(row.entry(), std::move(kernel));
  }
  absl::StatusOr<ModuleGlobals> globals =
      ModuleGlobals::Find(loaded.module_, description.globals());
  if (!globals.ok()) return globals.status();
  loaded.globals_ = *std::move(globals);
  absl::StatusOr<Module::Variable> barrier = loaded.module_.Global(kGridBarrierSymbol);
  if (barrier.ok() && barrier->size == sizeof(GridBarrier)) loaded.grid_barrier_ = barrier->address;
  return loaded;
}

absl::StatusOr<Kernel*> KernelModule::Find(std::string_view entry) {
  auto found = kernels_.find(absl::string_view(entry.data(), entry.size()));
  if (found == kernels_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no kernel `", std::string(entry), "` in the module"));
  }
  return &found->second;
}

wire::ModuleLoaded KernelModule::Attributes() const {
  wire::ModuleLoaded all;
  for (const auto& [entry, kernel] : kernels_) *all.add_kernels() = kernel.attributes;
  for (const ModuleGlobals::Global& global : globals_.all()) {
    wire::GlobalAttributes* attributes = all.add_globals();
    attributes->set_name(global.name);
    attributes->set_size(global.size);
  }
  return all;
}

LaunchLimits ReadLaunchLimits(const Driver& driver, CUdevice device) {
  auto read = [&](CUdevice_attribute attribute) {
    int value = 0;
    driver.cuDeviceGetAttribute(&value, attribute, device);
    return value;
  };
  LaunchLimits limits;
  limits.grid[0] = read(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  limits.grid[1] = read(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  limits.grid[2] = read(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  limits.block[0] = read(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  limits.block[1] = read(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  limits.block[2] = read(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  limits.threads_per_block = read(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  limits.shared_bytes_per_block = read(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  limits.num_multiprocessors = read(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  return limits;
}

absl::Status CheckGrid(const Kernel& kernel, const Grid& grid, const LaunchLimits& limits) {
  constexpr std::string_view kGridNames[] = {"grid.x", "grid.y", "grid.z"};
  constexpr std::string_view kBlockNames[] = {"block.x", "block.y", "block.z"};
  uint64_t threads = 1;
  for (int axis = 0; axis < 3; ++axis) {
    if (grid.grid[axis] == 0 || grid.block[axis] == 0) {
      return absl::InvalidArgumentError("a grid or block extent is 0");
    }
    if (grid.grid[axis] > static_cast<uint32_t>(limits.grid[axis])) {
      return Beyond(kGridNames[axis], grid.grid[axis], limits.grid[axis]);
    }
    if (grid.block[axis] > static_cast<uint32_t>(limits.block[axis])) {
      return Beyond(kBlockNames[axis], grid.block[axis], limits.block[axis]);
    }
    threads *= grid.block[axis];
  }
  if (threads > static_cast<uint64_t>(limits.threads_per_block)) {
    return Beyond("a block size", threads, limits.threads_per_block);
  }
  if (threads > static_cast<uint64_t>(kernel.max_threads)) {
    return Beyond(absl::StrCat("for kernel `", kernel.entry, "` a block size"), threads,
                  kernel.max_threads);
  }
  const uint64_t shared =
      static_cast<uint64_t>(grid.dynamic_shared_bytes) + kernel.static_shared_bytes;
  if (shared > static_cast<uint64_t>(limits.shared_bytes_per_block)) {
    return Beyond("shared memory for each block", shared, limits.shared_bytes_per_block);
  }
  return absl::OkStatus();
}

namespace {

// More dynamic shared memory than a kernel's default needs an opt-in.
absl::Status AllowShared(const Driver& driver, Kernel& kernel, uint32_t bytes) {
  const int shared = static_cast<int>(bytes);
  if (shared <= kernel.dynamic_shared_limit) return absl::OkStatus();
  STRIDE_CUDA_RETURN(driver.cuFuncSetAttribute(
                         kernel.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared),
                     "asking for shared memory");
  kernel.dynamic_shared_limit = shared;
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckFits(const Driver& driver, Kernel& kernel, const Grid& grid,
                       const LaunchLimits& limits) {
  absl::Status allowed = AllowShared(driver, kernel, grid.dynamic_shared_bytes);
  if (!allowed.ok()) return allowed;
  const int threads = static_cast<int>(grid.block[0] * grid.block[1] * grid.block[2]);
  int each = 0;
  STRIDE_CUDA_RETURN(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                         &each, kernel.function, threads, grid.dynamic_shared_bytes),
                     "asking how many blocks run at once");
  const uint64_t blocks = uint64_t{grid.grid[0]} * grid.grid[1] * grid.grid[2];
  const uint64_t fitting = static_cast<uint64_t>(each) * limits.num_multiprocessors;
  if (blocks <= fitting) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "kernel `", kernel.entry, "` cannot be launched: a cooperative grid of ", blocks,
      " blocks does not fit; of blocks of this size at most ", fitting, " run at once here"));
}

absl::Status Launch(const Driver& driver, CUstream stream, Kernel& kernel, const Grid& grid,
                    absl::Span<void*> parameters) {
  absl::Status allowed = AllowShared(driver, kernel, grid.dynamic_shared_bytes);
  if (!allowed.ok()) return allowed;
  if (grid.cooperative) {
    STRIDE_CUDA_RETURN(
        driver.cuLaunchCooperativeKernel(kernel.function, grid.grid[0], grid.grid[1], grid.grid[2],
                                         grid.block[0], grid.block[1], grid.block[2],
                                         grid.dynamic_shared_bytes, stream, parameters.data()),
        absl::StrCat("launching `", kernel.entry, "` cooperatively"));
    return absl::OkStatus();
  }
  STRIDE_CUDA_RETURN(
      driver.cuLaunchKernel(kernel.function, grid.grid[0], grid.grid[1], grid.grid[2],
                            grid.block[0], grid.block[1], grid.block[2], grid.dynamic_shared_bytes,
                            stream, parameters.data(), nullptr),
      absl::StrCat("launching `", kernel.entry, "`"));
  return absl::OkStatus();
}

}  // namespace stride::cuda
