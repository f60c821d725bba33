#include "server/durable/usage_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/base/crc32c.h"
#include "server/base/environment.h"
#include "server/base/system_error.h"
#include "server/durable/folder_lock.h"

namespace stride::durable {
namespace {

constexpr char kLock[] = "usage.lock", kTemporary[] = "usage.tmp";
// Followed by the CRC-32C of the content, in the machine's byte order, then the content.
constexpr std::string_view kMagic = "stride usage 1\n";
constexpr size_t kHeaderBytes = kMagic.size() + sizeof(uint32_t);

std::string Encode(std::string_view content) {
  const uint32_t crc = Crc32c(content.data(), content.size());
  std::string file(kMagic);
  file.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  return file.append(content);
}

absl::StatusOr<std::string> Decode(std::string_view file) {
  if (file.substr(0, kMagic.size()) != kMagic)
    return absl::DataLossError("it does not begin as a file of usage does");
  if (file.size() < kHeaderBytes) return absl::DataLossError("it is too short");
  uint32_t crc;
  std::memcpy(&crc, file.data() + kMagic.size(), sizeof(crc));
  const std::string_view content = file.substr(kHeaderBytes);
  if (Crc32c(content.data(), content.size()) != crc)
    return absl::DataLossError("it fails its checksum");
  return std::string(content);
}

absl::Status WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return SystemError(errno, "writing it");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadAll(int fd, size_t size) {
  std::string bytes(size, '\0');
  size_t at = 0;
  while (at < size) {
    const ssize_t count = read(fd, bytes.data() + at, size - at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(errno, "reading it");
    if (count == 0) return absl::DataLossError("it became shorter while it was read");
    at += static_cast<size_t>(count);
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<UsageFile>> UsageFile::Open(const std::string& folder) {
  auto state = Folder::MakeRoot(folder);
  if (!state.ok()) return state.status();
  auto lock = LockFolder(*state, kLock);
  if (!lock.ok()) return lock.status();
  return std::unique_ptr<UsageFile>(
      new UsageFile(*std::move(state), *std::move(lock), absl::StrCat(folder, "/", kName)));
}

absl::StatusOr<std::string> UsageFile::Read() const {
  // Opening a pipe would block until there is a writer.
  auto file = folder_.OpenFile(kName, O_RDONLY | O_NONBLOCK);
  if (!file.ok()) return file.status();
  struct stat info;
  if (fstat(file->get(), &info) != 0) return SystemError(errno, "reading it");
  if (!S_ISREG(info.st_mode)) return absl::DataLossError("it is no regular file");
  if (static_cast<size_t>(info.st_size) > kHeaderBytes + kMaxBytes)
    return absl::DataLossError("it is larger than a file of usage can be");
  auto bytes = ReadAll(file->get(), static_cast<size_t>(info.st_size));
  if (!bytes.ok()) return bytes;
  return Decode(*bytes);
}

absl::Status UsageFile::Write(std::string_view content) const {
  if (content.size() > kMaxBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the usage of all tenants takes more than ", kMaxBytes, " bytes"));
  }
  folder_.Remove(kTemporary);  // left by a daemon that died here
  auto file = folder_.OpenFile(kTemporary, O_WRONLY | O_CREAT | O_EXCL);
  if (!file.ok()) return file.status();
  absl::Status status = WriteAll(file->get(), Encode(content));
  if (status.ok() && fsync(file->get()) != 0) status = SystemError(errno, "writing it");
  if (status.ok()) status = folder_.Rename(kTemporary, folder_, kName);
  if (!status.ok()) {
    folder_.Remove(kTemporary);
    return status;
  }
  return folder_.Sync();
}

absl::StatusOr<std::string> UsageFile::SetAside() const {
  const std::string name = absl::StrCat(kName, ".damaged-", absl::ToUnixSeconds(WallNow()));
  if (absl::Status status = folder_.Rename(kName, folder_, name); !status.ok()) return status;
  if (absl::Status status = folder_.Sync(); !status.ok()) return status;
  return absl::StrCat(path_.substr(0, path_.size() - std::strlen(kName)), name);
}

}  // namespace stride::durable
