#include "server/broker/module_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/unique_fd.h"
#include "server/broker/content_key.h"

namespace stride::broker {
namespace {

constexpr char kSuffix[] = ".module";
// Followed by the sizes of the reply and the object, the hexadecimal SHA-256 of both, then both.
constexpr std::string_view kMagic = "strmod1\n";
// The same with the object compressed by zlib. The reply has the object's own size.
constexpr std::string_view kCompressedMagic = "strmodz\n";
// Reading 2 MB would take 6 ms compressed; reading the 30 KB of most objects takes 0.1 ms.
constexpr size_t kMostCompressed = 512 << 10;
// Zlib's largest compression ratio.
constexpr uint64_t kMostRatio = 1100;
constexpr size_t kHeaderBytes = 8 + 2 * sizeof(uint64_t) + 64;
// A trim goes below the limit by this share, so that not every write trims.
constexpr double kTrimTo = 0.8;

// Empty: it cannot be.
std::string Compress(std::string_view object) {
  uLongf size = compressBound(object.size());
  std::string compressed(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(compressed.data()), &size,
                reinterpret_cast<const Bytef*>(object.data()), object.size(),
                Z_BEST_COMPRESSION) != Z_OK)
    return "";
  compressed.resize(size);
  return compressed;
}

std::optional<std::string> Decompress(std::string_view compressed, uint64_t size) {
  if (size > compressed.size() * kMostRatio) return std::nullopt;
  std::string object(size, '\0');
  uLongf got = size;
  if (uncompress(reinterpret_cast<Bytef*>(object.data()), &got,
                 reinterpret_cast<const Bytef*>(compressed.data()), compressed.size()) != Z_OK ||
      got != size)
    return std::nullopt;
  return object;
}

std::string Encode(const wire::CompileReply& reply, std::string_view object, bool compress) {
  std::string compressed;
  if (compress && object.size() <= kMostCompressed && reply.size() == object.size())
    compressed = Compress(object);
  if (!compressed.empty()) object = compressed;
  std::string body = reply.SerializeAsString();
  uint64_t sizes[] = {body.size(), object.size()};
  body.append(object);
  std::string file(compressed.empty() ? kMagic : kCompressedMagic);
  file.append(reinterpret_cast<const char*>(sizes), sizeof(sizes));
  file += Sha256(body);
  return file + body;
}

std::optional<ModuleFiles::Entry> Decode(std::string_view file) {
  if (file.size() < kHeaderBytes) return std::nullopt;
  const bool compressed = file.substr(0, kMagic.size()) == kCompressedMagic;
  if (!compressed && file.substr(0, kMagic.size()) != kMagic) return std::nullopt;
  uint64_t sizes[2];
  std::memcpy(sizes, file.data() + kMagic.size(), sizeof(sizes));
  std::string_view checksum = file.substr(kHeaderBytes - 64, 64);
  std::string_view body = file.substr(kHeaderBytes);
  if (sizes[0] > body.size() || sizes[1] != body.size() - sizes[0]) return std::nullopt;
  if (Sha256(body) != checksum) return std::nullopt;
  ModuleFiles::Entry entry;
  if (!entry.reply.ParseFromArray(body.data(), static_cast<int>(sizes[0]))) return std::nullopt;
  if (!compressed) {
    entry.object = body.substr(sizes[0]);
    return entry;
  }
  auto object = Decompress(body.substr(sizes[0]), entry.reply.size());
  if (!object.has_value()) return std::nullopt;
  entry.object = *std::move(object);
  return entry;
}

absl::Status WriteAll(int fd, std::string_view content) {
  while (!content.empty()) {
    ssize_t written = write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return absl::ErrnoToStatus(errno, "writing compiled code");
    content.remove_prefix(written);
  }
  return absl::OkStatus();
}

// No fsync: the checksum detects a file that a power cut damaged, and it is compiled again.
absl::Status WriteWhole(const Folder& folder, const std::string& name, std::string_view content) {
  std::string temporary = absl::StrCat(name, ".");
  auto file = folder.MakeFile(&temporary);
  if (!file.ok()) return file.status();
  absl::Status status = WriteAll(file->get(), content);
  if (status.ok()) status = folder.Rename(temporary, folder, name);
  if (!status.ok()) folder.Remove(temporary);
  return status;
}

absl::StatusOr<std::string> ReadWhole(int fd) {
  std::string content;
  char buffer[65536];
  ssize_t got;
  while ((got = read(fd, buffer, sizeof(buffer))) > 0)
    content.append(buffer, static_cast<size_t>(got));
  if (got < 0) return absl::ErrnoToStatus(errno, "reading compiled code");
  return content;
}

// Names of modules and of unfinished files.
bool IsOurs(std::string_view name) {
  const size_t at = name.rfind(kSuffix);
  if (at == std::string_view::npos || at == 0) return false;
  const std::string_view rest = name.substr(at + sizeof(kSuffix) - 1);
  return rest.empty() || rest[0] == '.';
}

struct File {
  std::string name;
  timespec used;
  uint64_t bytes;
};

// The store's own files, the only ones that may be removed.
std::vector<File> ListFiles(const Folder& folder) {
  std::vector<File> files;
  auto names = folder.List();
  if (!names.ok()) return files;
  for (std::string& name : *names) {
    struct stat info;
    if (!IsOurs(name) || fstatat(folder.fd(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(info.st_mode))
      continue;
    files.push_back({std::move(name), info.st_mtim, static_cast<uint64_t>(info.st_size)});
  }
  return files;
}

}  // namespace

std::string ModuleFileName(const std::string& key) { return absl::StrCat(key, kSuffix); }

std::optional<ModuleFiles::Entry> ReadModuleFile(int fd) {
  auto content = ReadWhole(fd);
  return content.ok() ? Decode(*content) : std::nullopt;
}

ModuleFiles::ModuleFiles(const std::string& folder, uint64_t max_bytes, bool compress)
    : max_bytes_(max_bytes), compress_(compress) {
  if (folder.empty()) return;
  auto opened = Folder::MakeIn(folder);
  if (!opened.ok()) return;
  folder_ = *std::move(opened);
  absl::MutexLock lock(&mutex_);
  for (const File& file : ListFiles(*folder_)) bytes_ += file.bytes;
}

std::optional<ModuleFiles::Entry> ModuleFiles::Read(const std::string& key) {
  if (!folder_.has_value()) return std::nullopt;
  const std::string name = ModuleFileName(key);
  // Non-blocking, since opening a pipe would wait for a writer.
  auto file = folder_->OpenFile(name, O_RDONLY | O_NONBLOCK);
  if (!file.ok()) return std::nullopt;
  std::optional<Entry> entry = ReadModuleFile(file->get());
  if (entry.has_value()) {
    futimens(file->get(), nullptr);  // used now
  } else {
    folder_->Remove(name);
  }
  return entry;
}

absl::Status ModuleFiles::Write(const std::string& key, const wire::CompileReply& reply,
                                std::string_view object) {
  if (!folder_.has_value()) return absl::OkStatus();
  std::string content = Encode(reply, object, compress_);
  if (absl::Status s = WriteWhole(*folder_, ModuleFileName(key), content); !s.ok()) return s;
  absl::MutexLock lock(&mutex_);
  bytes_ += content.size();
  if (bytes_ > max_bytes_) Trim();
  return absl::OkStatus();
}

void ModuleFiles::Trim() {
  std::vector<File> files = ListFiles(*folder_);
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return std::tie(a.used.tv_sec, a.used.tv_nsec) < std::tie(b.used.tv_sec, b.used.tv_nsec);
  });
  bytes_ = 0;
  for (const File& file : files) bytes_ += file.bytes;
  for (const File& file : files) {
    if (bytes_ <= max_bytes_ * kTrimTo) return;
    folder_->Remove(file.name);
    bytes_ -= file.bytes;
  }
}

}  // namespace stride::broker
