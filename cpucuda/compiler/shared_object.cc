#include "cpucuda/compiler/shared_object.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

LLD_HAS_DRIVER(elf)

namespace stride::cpucuda {
namespace {

// Functions that the loading process provides: four memory functions that the code generator calls
// on its own, and those of libm that the prelude declares.
constexpr const char* kProvided[] = {
    "memcpy",
    "memmove",
    "memset",
    "memcmp",
    "bcmp",
    "fmod",
    "fmodf",
    "remainder",
    "remainderf",
    "tgamma",
    "tgammaf",
    "lgamma",
    "lgammaf",
    "erf",
    "erff",
    "erfc",
    "erfcf",
    "j0",
    "j1",
    "y0",
    "y1",
    "j0f",
    "j1f",
    "y0f",
    "y1f",
    "nextafter",
    "nextafterf",
    "frexp",
    "frexpf",
    "ldexp",
    "ldexpf",
    "modf",
    "modff",
    "ilogb",
    "ilogbf",
    "logb",
    "logbf",
    "remquo",
    "remquof",
    "jn",
    "jnf",
    "yn",
    "ynf",
    // Calls of the code generator for inline PTX, 16-bit numbers and processors that lack an
    // instruction.
    "ceil",
    "ceilf",
    "cos",
    "cosf",
    "exp2",
    "exp2f",
    "floor",
    "floorf",
    "fma",
    "fmaf",
    "fmax",
    "fmaxf",
    "fmin",
    "fminf",
    "log2",
    "log2f",
    "rint",
    "rintf",
    "roundeven",
    "roundevenf",
    "sin",
    "sinf",
    "tanhf",
    "trunc",
    "truncf",
    "__extendhfsf2",
    "__truncsfhf2",
    "__truncdfhf2",
    "__divti3",
    "__udivti3",
    "__modti3",
    "__umodti3",
    "__popcountdi2",
    "__atomic_load",
    "__atomic_store",
};

absl::StatusOr<llvm::SmallVector<char, 0>> EmitObject(llvm::Module& module,
                                                      llvm::TargetMachine& machine) {
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    return absl::InternalError("the code generator writes no object files");
  }
  passes.run(module);
  return object;
}

absl::Status CheckUndefined(const llvm::SmallVector<char, 0>& object) {
  llvm::StringRef bytes(object.data(), object.size());
  auto file = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "object"));
  if (!file) return absl::InternalError(llvm::toString(file.takeError()));
  for (const llvm::object::SymbolRef& symbol : (*file)->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (!flags || !name || name->empty()) continue;
    if (!(*flags & llvm::object::SymbolRef::SF_Undefined) || *name == "_GLOBAL_OFFSET_TABLE_")
      continue;
    bool provided = false;
    for (const char* known : kProvided) provided = provided || *name == known;
    if (!provided) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the kernel uses a name that is declared but defined nowhere: ", name->str()));
    }
  }
  return absl::OkStatus();
}

absl::Status Errno(const char* what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

absl::StatusOr<std::string> ReadAll(int fd) {
  off_t size = lseek(fd, 0, SEEK_END);
  if (size <= 0) return absl::InternalError("the linker wrote nothing");
  std::string bytes(size, '\0');
  for (off_t at = 0; at < size;) {
    ssize_t got = pread(fd, bytes.data() + at, size - at, at);
    if (got <= 0) return Errno("reading the linked object");
    at += got;
  }
  return bytes;
}

// lld can write to a plain file (with a temporary file in the same folder) or to standard output.
// The second needs no folder.
absl::StatusOr<std::string> Link(int input) {
  int output = memfd_create("stride-object", MFD_CLOEXEC);
  if (output < 0) return Errno("memfd_create");
  absl::Cleanup close_output = [&] { close(output); };
  fflush(stdout);
  int saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (dup2(output, STDOUT_FILENO) < 0) return Errno("dup2");
  absl::Cleanup restore = [&] {
    if (saved >= 0) {
      dup2(saved, STDOUT_FILENO);
      close(saved);
    } else {
      close(STDOUT_FILENO);
    }
  };
  std::string path = absl::StrCat("/proc/self/fd/", input);
  std::string errors;
  llvm::raw_string_ostream error_stream(errors);
  lld::Result linked = lld::lldMain(
      {"ld.lld", "-shared", "--threads=1", "--hash-style=gnu", "--build-id=none", "-z",
       "noexecstack", "-z", "now", "-z", "separate-code", "--strip-debug", "-o", "-", path.c_str()},
      error_stream, error_stream, {{lld::Gnu, &lld::elf::link}});
  llvm::outs().flush();
  if (linked.retCode != 0) return absl::InternalError(absl::StrCat("linking failed: ", errors));
  return ReadAll(output);
}

absl::Status WriteAll(int fd, const char* bytes, size_t size) {
  while (size > 0) {
    ssize_t done = write(fd, bytes, size);
    if (done <= 0) return Errno("writing the object");
    bytes += done;
    size -= done;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> MakeSharedObject(llvm::Module& module, llvm::TargetMachine& machine) {
  auto object = EmitObject(module, machine);
  if (!object.ok()) return object.status();
  if (absl::Status status = CheckUndefined(*object); !status.ok()) return status;
  int input = memfd_create("stride-input", MFD_CLOEXEC);
  if (input < 0) return Errno("memfd_create");
  absl::Cleanup close_input = [&] { close(input); };
  if (absl::Status status = WriteAll(input, object->data(), object->size()); !status.ok())
    return status;
  return Link(input);
}

}  // namespace stride::cpucuda
