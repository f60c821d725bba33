#include "client/npy/writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace stride::npy {
namespace {

Error CannotWrite(const std::string& path, int error) {
  const Code code = error == ENOSPC || error == EDQUOT ? Code::kResourceExhausted
                    : error == EACCES                  ? Code::kPermissionDenied
                    : error == ENOENT                  ? Code::kNotFound
                                                       : Code::kInvalidArgument;
  return {.code = code, .message = path + ": " + std::strerror(error)};
}

bool WriteAll(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return true;
}

bool IsRegularOrNew(const std::string& path) {
  struct stat status;
  return path != "-" && (stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode));
}

}  // namespace

struct Writer::Impl {
  std::string path;
  size_t header_size = 0;
  // The mapped temporary file, in the folder of `path`; empty: the elements are in `buffer`.
  std::string temporary;
  int fd = -1;
  std::span<std::byte> mapped;
  std::vector<std::byte> buffer;

  std::span<std::byte> bytes() { return temporary.empty() ? std::span(buffer) : mapped; }

  Result<void> MapTemporary(size_t size) {
    temporary = path + ".XXXXXX";
    fd = mkostemp(temporary.data(), O_CLOEXEC);
    if (fd < 0) {
      temporary.clear();
      return CannotWrite(path, errno);
    }
    // Reserve the blocks: a full disk is then an error here instead of SIGBUS later.
    if (const int error = posix_fallocate(fd, 0, static_cast<off_t>(size)); error != 0)
      return CannotWrite(path, error);
    void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) return CannotWrite(path, errno);
    mapped = {static_cast<std::byte*>(address), size};
    return {};
  }

  ~Impl() {
    if (!mapped.empty()) munmap(mapped.data(), mapped.size());
    if (fd >= 0) close(fd);
    if (!temporary.empty()) unlink(temporary.c_str());
  }
};

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;
Writer::~Writer() = default;

Result<Writer> Writer::Create(const std::string& path, const ArraySpec& spec, bool raw) {
  std::string header;
  if (!raw) {
    auto formatted = FormatHeader(spec);
    if (!formatted) return formatted.error();
    header = *formatted;
  }
  const auto size = SizeBytes(spec);
  if (!size)
    return Error{.code = Code::kInvalidArgument, .message = "No file can hold " + ToString(spec)};
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->header_size = header.size();
  const size_t total = header.size() + static_cast<size_t>(*size);
  if (IsRegularOrNew(path) && total > 0) {
    if (auto mapped = impl->MapTemporary(total); !mapped) return mapped.error();
  } else {
    impl->buffer.resize(total);
  }
  std::memcpy(impl->bytes().data(), header.data(), header.size());
  return Writer(std::move(impl));
}

std::span<std::byte> Writer::data() { return impl_->bytes().subspan(impl_->header_size); }

Result<void> Writer::Commit() {
  if (!impl_->temporary.empty()) {
    // mkostemp made the file private; give it the mode of any new file.
    const mode_t mask = umask(0);
    umask(mask);
    if (fchmod(impl_->fd, 0666 & ~mask) != 0 ||
        rename(impl_->temporary.c_str(), impl_->path.c_str()) != 0) {
      return CannotWrite(impl_->path, errno);
    }
    impl_->temporary.clear();
    return {};
  }
  const bool to_stdout = impl_->path == "-";
  const int fd = to_stdout
                     ? STDOUT_FILENO
                     : open(impl_->path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return CannotWrite(impl_->path, errno);
  const bool written = WriteAll(fd, impl_->buffer);
  const int error = errno;
  if (!to_stdout) close(fd);
  if (!written) return CannotWrite(to_stdout ? "standard output" : impl_->path, error);
  return {};
}

}  // namespace stride::npy
