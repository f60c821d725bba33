#include "server/base/executable_stamp.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/base/unique_fd.h"

namespace stride {
namespace {

// A larger note segment has no build id of a linker.
constexpr size_t kMaxNoteBytes = 64 << 10;

template <typename T>
bool ReadAt(int fd, uint64_t offset, T* to, size_t bytes) {
  return pread(fd, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

size_t Padded(size_t bytes) { return (bytes + 3) / 4 * 4; }

// The GNU build id among the notes; empty when there is none.
std::string BuildIdIn(const std::string& notes) {
  size_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= notes.size()) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof(note));
    const size_t name = at + sizeof(note), content = name + Padded(note.n_namesz);
    const size_t end = content + Padded(note.n_descsz);
    if (end > notes.size() || end < at) return "";
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        notes.compare(name, 4, std::string("GNU\0", 4)) == 0) {
      return absl::BytesToHexString(notes.substr(content, note.n_descsz));
    }
    at = end;
  }
  return "";
}

std::string BuildId(int fd) {
  Elf64_Ehdr header;
  if (!ReadAt(fd, 0, &header, sizeof(header)) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    return "";
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!ReadAt(fd, header.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr))) return "";
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNoteBytes) continue;
    std::string notes(segment.p_filesz, '\0');
    if (!ReadAt(fd, segment.p_offset, notes.data(), notes.size())) continue;
    if (std::string id = BuildIdIn(notes); !id.empty()) return id;
  }
  return "";
}

// Read from the loaded program: a sandbox may prevent opening its file.
std::string OwnBuildId() {
  std::string id;
  dl_iterate_phdr(
      [](dl_phdr_info* program, size_t, void* result) {
        for (int i = 0; i < program->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = program->dlpi_phdr[i];
          if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNoteBytes) continue;
          const auto* const notes =
              reinterpret_cast<const char*>(program->dlpi_addr + segment.p_vaddr);
          const std::string found = BuildIdIn(std::string(notes, segment.p_filesz));
          if (!found.empty()) *static_cast<std::string*>(result) = found;
        }
        return 1;  // the first is the program, the others its libraries
      },
      &id);
  return id;
}

std::string SizeAndTime(const std::string& path) {
  struct stat info = {};
  stat(path.c_str(), &info);
  return absl::StrCat(info.st_size, " ", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec);
}

}  // namespace

std::string ExecutableStamp() {
  std::string id = OwnBuildId();
  return id.empty() ? SizeAndTime("/proc/self/exe") : id;
}

std::string ExecutableStamp(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string id = file.valid() ? BuildId(file.get()) : "";
  return id.empty() ? SizeAndTime(path) : id;
}

}  // namespace stride
