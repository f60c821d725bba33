#include "server/worker/cuda/lower/kernel.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"

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
  void Set(size_t index, const void* data, size_t size) {
    if (size > 0) std::memcpy(&words_[offsets_[index]], data, size);
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

absl::Status SetArgument(const Lowering& lowering, const wire::KernelArgument& argument, int index,
                         uint64_t expected, ArgumentBuffer* buffer) {
  if (!argument.has_array()) {
    const std::string& raw = argument.raw();
    if (raw.size() != expected) return WrongSize(index, raw.size(), expected);
    buffer->Set(index, raw.data(), raw.size());
    return absl::OkStatus();
  }
  // How far the kernel reaches from here is its own affair; where it starts is checked.
  absl::StatusOr<CUdeviceptr> address =
      lowering.arenas.Range(argument.array().arena(), argument.array().offset(), 0);
  if (!address.ok()) return address.status();
  if (expected != sizeof(*address)) return WrongSize(index, sizeof(*address), expected);
  buffer->Set(index, &*address, sizeof(*address));
  return absl::OkStatus();
}

bool SetExtents(const google::protobuf::RepeatedField<uint32_t>& from, uint32_t (&to)[3]) {
  if (from.size() > 3) return false;
  std::copy(from.begin(), from.end(), to);
  return true;
}

}  // namespace

absl::Status LowerKernel(const Lowering& lowering, KernelModule& module,
                         const wire::KernelLaunch& launch) {
  absl::StatusOr<Kernel*> kernel = module.Find(launch.entry());
  if (!kernel.ok()) return kernel.status();
  Grid grid;
  if (!SetExtents(launch.grid(), grid.grid) || !SetExtents(launch.block(), grid.block)) {
    return absl::InvalidArgumentError("a grid or block has more than 3 extents");
  }
  grid.dynamic_shared_bytes = launch.dynamic_shared_bytes();
  if (absl::Status status = CheckGrid(**kernel, grid, lowering.limits); !status.ok()) {
    return status;
  }
  const size_t expected = (*kernel)->parameters.size();
  if (static_cast<size_t>(launch.arguments_size()) != expected) {
    return absl::InvalidArgumentError(absl::StrCat("kernel `", launch.entry(), "` takes ", expected,
                                                   " arguments, given ", launch.arguments_size()));
  }
  ArgumentBuffer buffer(**kernel);
  for (int i = 0; i < launch.arguments_size(); ++i) {
    absl::Status status =
        SetArgument(lowering, launch.arguments(i), i, (*kernel)->parameters[i].size, &buffer);
    if (!status.ok()) return status;
  }
  std::vector<void*> pointers = buffer.Pointers();
  return Launch(lowering.driver, lowering.stream, **kernel, grid, absl::MakeSpan(pointers));
}

}  // namespace stride::cuda
