#include "server/worker/cuda/driver/module_image.h"

#include <elf.h>

#include <cstdint>
#include <cstring>

namespace stride::cuda {
namespace {

// From the toolkit's fatbinary_section.h and the header of every fatbin.
constexpr uint32_t kFatbinMagic = 0xBA55ED50;
struct FatbinHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t body_bytes;
};
constexpr uint16_t kCudaMachine = 190;  // EM_CUDA

template <typename T>
bool Read(std::string_view bytes, uint64_t offset, T* value) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(value, bytes.data() + offset, sizeof(T));
  return true;
}

bool Within(uint64_t offset, uint64_t size, uint64_t limit) {
  return offset <= limit && size <= limit - offset;
}

absl::Status Broken() { return absl::InvalidArgumentError("the binary is damaged or cut off"); }

absl::Status CheckCubin(std::string_view bytes) {
  Elf64_Ehdr header;
  if (!Read(bytes, 0, &header)) return Broken();
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kCudaMachine) {
    return absl::InvalidArgumentError("the binary is no CUDA binary");
  }
  if (!Within(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr), bytes.size()) ||
      !Within(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr), bytes.size())) {
    return Broken();
  }
  for (int i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!Read(bytes, header.e_shoff + i * sizeof(section), &section)) return Broken();
    if (section.sh_type == SHT_NOBITS) continue;
    if (!Within(section.sh_offset, section.sh_size, bytes.size())) return Broken();
  }
  return absl::OkStatus();
}

}  // namespace

ImageKind ImageKindOf(std::string_view bytes) {
  uint32_t magic = 0;
  if (Read(bytes, 0, &magic) && magic == kFatbinMagic) return ImageKind::kFatbin;
  if (bytes.substr(0, SELFMAG) == ELFMAG) return ImageKind::kCubin;
  return ImageKind::kPtx;
}

absl::Status CheckImage(std::string_view bytes) {
  switch (ImageKindOf(bytes)) {
    case ImageKind::kCubin:
      return CheckCubin(bytes);
    case ImageKind::kFatbin: {
      FatbinHeader header;
      if (!Read(bytes, 0, &header) || header.header_bytes < sizeof(header) ||
          !Within(header.header_bytes, header.body_bytes, bytes.size())) {
        return Broken();
      }
      return absl::OkStatus();
    }
    case ImageKind::kPtx:
      break;
  }
  if (bytes.find('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError("the binary is neither a cubin nor a fatbin");
  }
  return absl::OkStatus();
}

}  // namespace stride::cuda
