#include "client/npy/reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace stride::npy {
namespace {

Error CannotRead(const std::string& path) {
  const Code code = errno == ENOENT   ? Code::kNotFound
                    : errno == EACCES ? Code::kPermissionDenied
                                      : Code::kInvalidArgument;
  return {.code = code, .message = path + ": " + std::strerror(errno)};
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ > STDERR_FILENO) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Result<std::vector<std::byte>> ReadToEnd(int fd, const std::string& path) {
  std::vector<std::byte> bytes(1 << 20);
  size_t size = 0;
  for (;;) {
    if (size == bytes.size()) bytes.resize(bytes.size() * 2);
    const ssize_t got = read(fd, bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return CannotRead(path);
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  bytes.resize(size);
  return bytes;
}

// Real and imaginary parts are swapped separately.
size_t SwapWidth(DataType type) {
  const bool complex = type == DataType::kComplex64 || type == DataType::kComplex128;
  return static_cast<size_t>(ItemSize(type)) / (complex ? 2 : 1);
}

void SwapBytes(std::span<std::byte> data, size_t width) {
  for (size_t i = 0; i + width <= data.size(); i += width)
    std::reverse(data.begin() + i, data.begin() + i + width);
}

}  // namespace

Result<void> Reader::SetBytes(std::span<const std::byte> bytes) {
  auto header = ParseHeader(bytes);
  if (!header) return header.error();
  header_ = *header;
  const auto body = bytes.subspan(header_.data_offset);
  const auto expected = static_cast<size_t>(*SizeBytes(header_.spec));
  if (body.size() != expected) {
    return Error{.code = Code::kInvalidArgument,
                 .message = "Not a sound .npy file: " + ToString(header_.spec) + " takes " +
                            std::to_string(expected) + " bytes, " + std::to_string(body.size()) +
                            " follow the header"};
  }
  data_ = body;
  if (header_.big_endian) {
    std::vector<std::byte> swapped(body.begin(), body.end());
    SwapBytes(swapped, SwapWidth(header_.spec.data_type));
    owned_ = std::move(swapped);
    data_ = owned_;
  }
  return {};
}

Result<Reader> Reader::Open(const std::string& path) {
  const Descriptor fd(path == "-" ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status;
  if (fd.get() < 0 || fstat(fd.get(), &status) != 0) return CannotRead(path);
  if (S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    return CannotRead(path);
  }
  Reader reader;
  std::span<const std::byte> bytes;
  if (S_ISREG(status.st_mode) && status.st_size > 0 && path != "-") {
    const auto size = static_cast<size_t>(status.st_size);
    void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (address == MAP_FAILED) return CannotRead(path);
    reader.mapping_ = std::shared_ptr<const void>(
        address, [size](const void* p) { munmap(const_cast<void*>(p), size); });
    madvise(address, size, MADV_SEQUENTIAL);
    bytes = {static_cast<const std::byte*>(address), size};
  } else {
    auto read = ReadToEnd(fd.get(), path);
    if (!read) return read.error();
    reader.owned_ = std::move(*read);
    bytes = reader.owned_;
  }
  if (auto set = reader.SetBytes(bytes); !set) {
    Error error = set.error();
    error.message = (path == "-" ? "standard input" : path) + ": " + error.message;
    return error;
  }
  return reader;
}

std::vector<std::byte> Reader::InCOrder() const {
  const auto& shape = header_.spec.shape;
  if (!fortran_order() || shape.size() < 2 || data_.empty()) return {data_.begin(), data_.end()};
  const auto item = static_cast<size_t>(ItemSize(header_.spec.data_type));
  std::vector<size_t> steps(shape.size());
  size_t step = item;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    steps[axis] = step;
    step *= static_cast<size_t>(shape[axis]);
  }
  std::vector<std::byte> out(data_.size());
  std::vector<int64_t> index(shape.size(), 0);
  size_t from = 0;
  for (size_t to = 0; to < out.size(); to += item) {
    std::memcpy(out.data() + to, data_.data() + from, item);
    // Advance to the next element in C order: the last index changes fastest.
    for (size_t axis = shape.size(); axis-- > 0;) {
      from += steps[axis];
      if (++index[axis] < shape[axis]) break;
      from -= steps[axis] * static_cast<size_t>(shape[axis]);
      index[axis] = 0;
    }
  }
  return out;
}

}  // namespace stride::npy
