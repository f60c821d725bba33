#include "server/broker/module_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/unique_fd.h"
#include "server/broker/content_key.h"

namespace stride::broker {
namespace {

namespace fs = std::filesystem;

constexpr char kSuffix[] = ".module";
// Followed by the sizes of the reply and the object, the hexadecimal SHA-256 of both, then both.
constexpr std::string_view kMagic = "strmod1\n";
constexpr size_t kHeaderBytes = 8 + 2 * sizeof(uint64_t) + 64;
// A trim goes below the bound by this share, so that not every write trims.
constexpr double kTrimTo = 0.8;

std::string Encode(const wire::CompileReply& reply, std::string_view object) {
  std::string body = reply.SerializeAsString();
  uint64_t sizes[] = {body.size(), object.size()};
  body.append(object);
  std::string file(kMagic);
  file.append(reinterpret_cast<const char*>(sizes), sizeof(sizes));
  file += Sha256(body);
  return file + body;
}

std::optional<ModuleFiles::Entry> Decode(std::string_view file) {
  if (file.size() < kHeaderBytes || file.substr(0, kMagic.size()) != kMagic) return std::nullopt;
  uint64_t sizes[2];
  std::memcpy(sizes, file.data() + kMagic.size(), sizeof(sizes));
  std::string_view checksum = file.substr(kHeaderBytes - 64, 64);
  std::string_view body = file.substr(kHeaderBytes);
  if (sizes[0] > body.size() || sizes[1] != body.size() - sizes[0]) return std::nullopt;
  if (Sha256(body) != checksum) return std::nullopt;
  ModuleFiles::Entry entry;
  if (!entry.reply.ParseFromArray(body.data(), static_cast<int>(sizes[0]))) return std::nullopt;
  entry.object = body.substr(sizes[0]);
  return entry;
}

absl::Status WriteWhole(const std::string& path, std::string_view content) {
  std::string temporary = absl::StrCat(path, ".XXXXXX");
  UniqueFd fd(mkostemp(temporary.data(), O_CLOEXEC));  // mode 0600
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "making a file for compiled code");
  while (!content.empty()) {
    ssize_t written = write(fd.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    content.remove_prefix(written);
  }
  // No fsync: a file that a power cut leaves damaged is told by its checksum and compiled anew.
  if (content.empty() && rename(temporary.c_str(), path.c_str()) == 0) return absl::OkStatus();
  absl::Status status = absl::ErrnoToStatus(errno, "writing compiled code");
  unlink(temporary.c_str());
  return status;
}

struct File {
  fs::path path;
  fs::file_time_type used;
  uint64_t bytes;
};

std::vector<File> ListFiles(const std::string& folder) {
  std::vector<File> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (!it->is_regular_file(gone)) continue;
    uint64_t bytes = it->file_size(gone);
    auto used = it->last_write_time(gone);
    if (!gone) files.push_back({it->path(), used, bytes});
  }
  return files;
}

}  // namespace

ModuleFiles::ModuleFiles(std::string folder, uint64_t max_bytes)
    : folder_(std::move(folder)), max_bytes_(max_bytes) {
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  chmod(folder_.c_str(), 0700);
  absl::MutexLock lock(&mutex_);
  for (const File& file : ListFiles(folder_)) bytes_ += file.bytes;
}

std::string ModuleFiles::PathOf(const std::string& key) const {
  return absl::StrCat(folder_, "/", key, kSuffix);
}

std::optional<ModuleFiles::Entry> ModuleFiles::Read(const std::string& key) {
  if (folder_.empty()) return std::nullopt;
  std::string path = PathOf(key);
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return std::nullopt;
  std::string content((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  std::optional<Entry> entry = Decode(content);
  if (entry.has_value()) {
    utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // used now
  } else {
    unlink(path.c_str());
  }
  return entry;
}

absl::Status ModuleFiles::Write(const std::string& key, const wire::CompileReply& reply,
                                std::string_view object) {
  if (folder_.empty()) return absl::OkStatus();
  std::string content = Encode(reply, object);
  if (absl::Status s = WriteWhole(PathOf(key), content); !s.ok()) return s;
  absl::MutexLock lock(&mutex_);
  bytes_ += content.size();
  if (bytes_ > max_bytes_) Trim();
  return absl::OkStatus();
}

void ModuleFiles::Trim() {
  std::vector<File> files = ListFiles(folder_);
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.used < b.used; });
  bytes_ = 0;
  for (const File& file : files) bytes_ += file.bytes;
  for (const File& file : files) {
    if (bytes_ <= max_bytes_ * kTrimTo) return;
    unlink(file.path.c_str());
    bytes_ -= file.bytes;
  }
}

}  // namespace stride::broker
