#include "server/worker/cuda/compile/cubin_info.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "absl/strings/match.h"
#include "server/worker/cuda/driver/module_image.h"

namespace stride::cuda {
namespace {

// Names from the vendor's ELF format, as cuobjdump and nvdisasm print them; values read from
// objects of NVRTC 13.0.
constexpr uint8_t kEntrySymbol = 0x10;  // st_other: STO_CUDA_ENTRY
constexpr uint8_t kFormatSized =
    0x04;  // EIFMT_SVAL: a payload follows; other formats have their value in the size field
constexpr uint8_t kMaxThreads = 0x05;  // EIATTR_MAX_THREADS: three extents
constexpr uint8_t kParameter =
    0x17;  // EIATTR_KPARAM_INFO: index, ordinal, offset, size in the upper 14 bits
constexpr uint8_t kLargeParameter = 0x45;  // EIATTR_KPARAM_INFO_V2: the same with a 16-bit size
constexpr uint32_t kReservedShared =
    1024;  // in every block from sm_90 on, included in the section's size
constexpr uint32_t kFirstReservingArch = 90;

template <typename T>
T ReadAt(std::string_view bytes, uint64_t offset) {
  T value{};
  if (offset <= bytes.size() && bytes.size() - offset >= sizeof(T)) {
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
  }
  return value;
}

// Sections by name. CheckImage has verified that they lie within the file.
class Sections {
 public:
  explicit Sections(std::string_view file) : file_(file) {
    const auto header = ReadAt<Elf64_Ehdr>(file, 0);
    arch_ = header.e_flags >> 8 & 0xff;
    auto section = [&](int i) {
      return ReadAt<Elf64_Shdr>(file, header.e_shoff + i * sizeof(Elf64_Shdr));
    };
    const std::string_view names = Content(section(header.e_shstrndx));
    for (int i = 0; i < header.e_shnum; ++i) {
      names_.emplace_back(StringAt(names, section(i).sh_name));
      sections_.emplace(names_.back(), section(i));
    }
  }

  static std::string_view StringAt(std::string_view table, uint64_t offset) {
    if (offset >= table.size()) return {};
    table.remove_prefix(offset);
    return table.substr(0, table.find('\0'));
  }
  const Elf64_Shdr* Find(const std::string& name) const {
    auto found = sections_.find(name);
    return found == sections_.end() ? nullptr : &found->second;
  }
  std::string_view Content(const std::string& name) const {
    const Elf64_Shdr* section = Find(name);
    return section != nullptr ? Content(*section) : std::string_view();
  }
  // Empty for an invalid index.
  std::string NameOf(uint32_t index) const { return index < names_.size() ? names_[index] : ""; }
  uint32_t arch() const { return arch_; }

 private:
  std::string_view Content(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS || section.sh_offset > file_.size()) return {};
    return file_.substr(section.sh_offset, section.sh_size);
  }

  std::string_view file_;
  uint32_t arch_ = 0;
  std::vector<std::string> names_;
  std::map<std::string, Elf64_Shdr> sections_;
};

void ReadAttribute(uint8_t attribute, std::string_view payload,
                   std::map<uint16_t, KernelInfo::Slot>* slots, KernelInfo* kernel) {
  if (attribute == kMaxThreads) {
    const uint64_t threads = uint64_t{ReadAt<uint32_t>(payload, 0)} * ReadAt<uint32_t>(payload, 4) *
                             ReadAt<uint32_t>(payload, 8);
    kernel->max_threads = static_cast<uint32_t>(std::min<uint64_t>(threads, 1024));
  } else if (attribute == kParameter || attribute == kLargeParameter) {
    const uint32_t packed = ReadAt<uint32_t>(payload, 8);
    const uint32_t size = attribute == kParameter ? packed >> 18 : packed & 0xffff;
    (*slots)[ReadAt<uint16_t>(payload, 4)] = {ReadAt<uint16_t>(payload, 6), size, false};
  }
}

void ReadInfo(std::string_view info, KernelInfo* kernel) {
  std::map<uint16_t, KernelInfo::Slot> slots;  // by ordinal
  while (info.size() >= 4) {
    const auto format = ReadAt<uint8_t>(info, 0), attribute = ReadAt<uint8_t>(info, 1);
    const auto size = ReadAt<uint16_t>(info, 2);
    info.remove_prefix(4);
    if (format != kFormatSized) continue;
    const std::string_view payload = info.substr(0, size);
    ReadAttribute(attribute, payload, &slots, kernel);
    info.remove_prefix(payload.size());
  }
  for (const auto& [ordinal, slot] : slots) kernel->parameters.push_back(slot);
}

}  // namespace

absl::StatusOr<std::vector<KernelInfo>> ReadCubin(std::string_view cubin) {
  if (ImageKindOf(cubin) != ImageKind::kCubin) {
    return absl::InvalidArgumentError("the binary is no cubin");
  }
  if (absl::Status status = CheckImage(cubin); !status.ok()) return status;
  const Sections sections(cubin);
  const std::string_view symbols = sections.Content(".symtab");
  const std::string_view names = sections.Content(".strtab");
  std::vector<KernelInfo> kernels;
  for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols.size(); at += sizeof(Elf64_Sym)) {
    const auto symbol = ReadAt<Elf64_Sym>(symbols, at);
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || (symbol.st_other & kEntrySymbol) == 0) {
      continue;
    }
    KernelInfo kernel;
    kernel.symbol = std::string(Sections::StringAt(names, symbol.st_name));
    ReadInfo(sections.Content(".nv.info." + kernel.symbol), &kernel);
    if (const Elf64_Shdr* shared = sections.Find(".nv.shared." + kernel.symbol)) {
      const bool reserves = sections.arch() >= kFirstReservingArch;
      const uint64_t reserved = reserves ? kReservedShared : 0;
      if (shared->sh_size > reserved) kernel.static_shared_bytes = shared->sh_size - reserved;
    }
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

absl::StatusOr<std::vector<VariableInfo>> ReadCubinVariables(std::string_view cubin) {
  if (absl::Status status = CheckImage(cubin); !status.ok()) return status;
  const Sections sections(cubin);
  const std::string_view symbols = sections.Content(".symtab");
  const std::string_view names = sections.Content(".strtab");
  std::vector<VariableInfo> variables;
  for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols.size(); at += sizeof(Elf64_Sym)) {
    const auto symbol = ReadAt<Elf64_Sym>(symbols, at);
    if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT) continue;
    const std::string section = sections.NameOf(symbol.st_shndx);
    // The bank of __constant__ variables; the compiler uses the others.
    const bool constant = section.rfind(".nv.constant3", 0) == 0;
    if (!constant && section.rfind(".nv.global", 0) != 0) continue;
    variables.push_back(
        {std::string(Sections::StringAt(names, symbol.st_name)), symbol.st_size, constant});
  }
  return variables;
}

}  // namespace stride::cuda
