#include "server/worker/cuda/lower/kernel.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/worker/cuda/driver/cuda_status.h"
#include "server/worker/cuda/driver/grid_barrier.h"

namespace stride::cuda {
namespace {

// Arguments in memory, each aligned for any type.
class ArgumentBuffer {
 public:
  explicit ArgumentBuffer(const Kernel& kernel) {
    for (const Kernel::Slot& slot : kernel.parameters) {
      offsets_.push_back(words_.size());
      words_.resize(words_.size() + (slot.size + sizeof(Word) - 1) / sizeof(Word));
    }
  }
  void Set(size_t index, const void* data, size_t size, size_t offset = 0) {
    if (size == 0) return;
    std::memcpy(reinterpret_cast<std::byte*>(&words_[offsets_[index]]) + offset, data, size);
  }
  std::vector<void*> Pointers() {
    std::vector<void*> pointers;
    for (size_t offset : offsets_) pointers.push_back(words_.data() + offset);
    return pointers;
  }

 private:
  struct alignas(16) Word {
    std::byte bytes[16];
  };
  std::vector<Word> words_;
  std::vector<size_t> offsets_;
};

absl::Status WrongSize(int index, uint64_t given, uint64_t expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("argument ", index, " has ", given, " bytes where the kernel takes ", expected));
}

absl::Status SetStruct(const Lowering& lowering, const wire::KernelArgument::Aggregate& aggregate,
                       int index, uint64_t expected, ArgumentBuffer* buffer) {
  const std::string& raw = aggregate.raw();
  if (raw.size() != expected) return WrongSize(index, raw.size(), expected);
  buffer->Set(index, raw.data(), raw.size());
  for (const auto& pointer : aggregate.pointers()) {
    absl::StatusOr<CUdeviceptr> address =
        lowering.arenas.Range(pointer.array().arena(), pointer.array().offset(), 0);
    if (!address.ok()) return address.status();
    if (uint64_t{pointer.offset()} + sizeof(*address) > raw.size()) {
      return absl::InvalidArgumentError("a struct's pointer lies outside it");
    }
    buffer->Set(index, &*address, sizeof(*address), pointer.offset());
  }
  return absl::OkStatus();
}

absl::Status SetTexture(const Lowering& lowering, const wire::Texture& texture, int index,
                        uint64_t expected, ArgumentBuffer* buffer) {
  absl::StatusOr<uint64_t> bytes = TextureTable::BytesOf(texture);
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<CUdeviceptr> address =
      lowering.arenas.Range(texture.array().arena(), texture.array().offset(), *bytes);
  if (!address.ok()) return address.status();
  absl::StatusOr<CUtexObject> handle = lowering.textures.Take(texture, *address);
  if (!handle.ok()) return handle.status();
  if (expected != sizeof(*handle)) return WrongSize(index, sizeof(*handle), expected);
  buffer->Set(index, &*handle, sizeof(*handle));
  return absl::OkStatus();
}

absl::Status SetArgument(const Lowering& lowering, const wire::KernelArgument& argument, int index,
                         uint64_t expected, ArgumentBuffer* buffer) {
  if (argument.has_aggregate()) {
    return SetStruct(lowering, argument.aggregate(), index, expected, buffer);
  }
  if (argument.has_texture())
    return SetTexture(lowering, argument.texture(), index, expected, buffer);
  if (!argument.has_array()) {
    const std::string& raw = argument.raw();
    if (raw.size() != expected) return WrongSize(index, raw.size(), expected);
    buffer->Set(index, raw.data(), raw.size());
    return absl::OkStatus();
  }
  // The start address is checked; the extent of the kernel's accesses is not known.
  absl::StatusOr<CUdeviceptr> address =
      lowering.arenas.Range(argument.array().arena(), argument.array().offset(), 0);
  if (!address.ok()) return address.status();
  if (expected != sizeof(*address)) return WrongSize(index, sizeof(*address), expected);
  buffer->Set(index, &*address, sizeof(*address));
  return absl::OkStatus();
}

absl::Status SetGlobal(const Lowering& lowering, ModuleGlobals& globals,
                       const wire::GlobalValue& value) {
  ModuleGlobals::Global* global = globals.FindGlobal(value.name());
  if (global == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the module has no variable `", value.name(), "`"));
  }
  const uint64_t size = value.has_array() ? value.size() : value.raw().size();
  if (size > global->size) {
    return absl::InvalidArgumentError(absl::StrCat("a value of ", size, " bytes is longer than `",
                                                   value.name(), "`, which has ", global->size));
  }
  absl::Status status = globals.WillChange(lowering.driver, lowering.stream, global);
  if (!status.ok() || size == 0) return status;
  if (!value.has_array()) return lowering.values.Copy(global->address, value.raw().data(), size);
  absl::StatusOr<CUdeviceptr> from =
      lowering.arenas.Range(value.array().arena(), value.array().offset(), size);
  if (!from.ok()) return from.status();
  return ToStatus(lowering.driver.cuMemcpyDtoDAsync(global->address, *from, size, lowering.stream),
                  absl::StrCat("setting `", value.name(), "`"));
}

absl::Status SetGlobals(const Lowering& lowering, ModuleGlobals& globals,
                        const wire::KernelLaunch& launch) {
  absl::Status status = globals.Restore(lowering.driver, lowering.stream);
  for (const wire::GlobalValue& value : launch.globals()) {
    if (status.ok()) status = SetGlobal(lowering, globals, value);
  }
  return status;
}

absl::Status SetGridBarrier(const Lowering& lowering, const KernelModule& module, bool cooperative,
                            CUdeviceptr fault) {
  if (module.grid_barrier() == 0) return absl::OkStatus();
  GridBarrier barrier;
  barrier.cooperative = cooperative;
  barrier.fault = fault;
  return lowering.values.Copy(module.grid_barrier(), &barrier, sizeof(barrier));
}

bool SetExtents(const google::protobuf::RepeatedField<uint32_t>& from, uint32_t (&to)[3]) {
  if (from.size() > 3) return false;
  std::copy(from.begin(), from.end(), to);
  return true;
}

}  // namespace

absl::Status LowerKernel(const Lowering& lowering, KernelModule& module,
                         const wire::KernelLaunch& launch, CUdeviceptr fault) {
  absl::StatusOr<Kernel*> kernel = module.Find(launch.entry());
  if (!kernel.ok()) return kernel.status();
  Grid grid;
  if (!SetExtents(launch.grid(), grid.grid) || !SetExtents(launch.block(), grid.block)) {
    return absl::InvalidArgumentError("a grid or block has more than 3 extents");
  }
  grid.dynamic_shared_bytes = launch.dynamic_shared_bytes();
  grid.cooperative = launch.cooperative();
  if (absl::Status status = CheckGrid(**kernel, grid, lowering.limits); !status.ok()) {
    return status;
  }
  const size_t expected = (*kernel)->parameters.size();
  if (static_cast<size_t>(launch.arguments_size()) != expected) {
    return absl::InvalidArgumentError(absl::StrCat("kernel `", launch.entry(), "` takes ", expected,
                                                   " arguments, given ", launch.arguments_size()));
  }
  ArgumentBuffer buffer(**kernel);
  lowering.textures.BeginLaunch();
  for (int i = 0; i < launch.arguments_size(); ++i) {
    absl::Status status =
        SetArgument(lowering, launch.arguments(i), i, (*kernel)->parameters[i].size, &buffer);
    if (!status.ok()) return status;
  }
  if (grid.cooperative) {
    absl::Status fits = CheckFits(lowering.driver, **kernel, grid, lowering.limits);
    if (!fits.ok()) return fits;
  }
  absl::Status set = SetGlobals(lowering, module.globals(), launch);
  if (set.ok()) set = SetGridBarrier(lowering, module, grid.cooperative, fault);
  if (!set.ok()) return set;
  std::vector<void*> pointers = buffer.Pointers();
  return Launch(lowering.driver, lowering.stream, **kernel, grid, absl::MakeSpan(pointers));
}

}  // namespace stride::cuda
