#include "server/durable/content_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/base/crash_point.h"
#include "server/base/crc32c.h"

namespace stride::durable {
namespace {

constexpr std::string_view kSuffix = ".content";
constexpr std::string_view kUnfinished = ".tmp";

absl::Status Damaged(std::string_view how) {
  return absl::DataLossError(absl::StrCat("its file ", absl::string_view(how.data(), how.size())));
}

}  // namespace

std::string ContentFileName(uint64_t id) { return absl::StrFormat("%016x%s", id, kSuffix.data()); }

uint64_t ContentOfFileName(std::string_view name) {
  uint64_t id = 0;
  bool named = name.size() == 16 + kSuffix.size() &&
               absl::SimpleHexAtoi(absl::string_view(name.data(), 16), &id) &&
               name == ContentFileName(id);
  return named ? id : 0;
}

bool IsUnfinishedContent(std::string_view name) {
  const size_t stem = name.size() - std::min(name.size(), kUnfinished.size());
  return name.substr(stem) == kUnfinished && ContentOfFileName(name.substr(0, stem)) != 0;
}

ContentWriter::ContentWriter(std::shared_ptr<const Folder> folder, uint64_t id)
    : folder_(std::move(folder)),
      name_(ContentFileName(id)),
      temporary_(absl::StrCat(name_, kUnfinished.data())) {}

absl::StatusOr<std::unique_ptr<ContentWriter>> ContentWriter::Create(
    std::shared_ptr<const Folder> folder, uint64_t id) {
  std::unique_ptr<ContentWriter> writer(new ContentWriter(std::move(folder), id));
  auto file = writer->folder_->OpenFile(writer->temporary_, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.ok()) return file.status();
  writer->fd_ = *std::move(file);
  return writer;
}

ContentWriter::~ContentWriter() {
  if (fd_.valid() && !finished_) folder_->Remove(temporary_);
}

absl::Status ContentWriter::Write(std::string_view bytes) {
  crc_ = Crc32c(bytes.data(), bytes.size(), crc_);
  size_ += static_cast<int64_t>(bytes.size());
  while (!bytes.empty()) {
    ssize_t written = write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return absl::ErrnoToStatus(errno, "writing an array's file");
    bytes.remove_prefix(written);
  }
  return absl::OkStatus();
}

absl::Status ContentWriter::Finish() {
  if (fsync(fd_.get()) != 0) return absl::ErrnoToStatus(errno, "writing an array's file");
  STRIDE_CRASH_POINT("durable.file_written");
  if (absl::Status status = folder_->Rename(temporary_, *folder_, name_); !status.ok())
    return status;
  finished_ = true;
  STRIDE_CRASH_POINT("durable.file_named");
  return folder_->Sync();
}

absl::StatusOr<std::unique_ptr<ContentReader>> ContentReader::Open(const Folder& folder,
                                                                   const ContentRow& row) {
  std::unique_ptr<ContentReader> reader(new ContentReader(row));
  // Non-blocking, since opening a pipe would wait for a writer.
  auto file = folder.OpenFile(ContentFileName(row.id), O_RDONLY | O_NONBLOCK);
  if (absl::IsNotFound(file.status())) return Damaged("is gone");
  if (absl::IsFailedPrecondition(file.status())) return Damaged("is a symbolic link");
  if (!file.ok()) return file.status();
  reader->fd_ = *std::move(file);
  struct stat info;
  if (fstat(reader->fd_.get(), &info) != 0)
    return absl::ErrnoToStatus(errno, "opening an array's file");
  if (!S_ISREG(info.st_mode) || info.st_size != row.size)
    return Damaged(info.st_size < row.size ? "is too short" : "is not what was written");
  posix_fadvise(reader->fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  return reader;
}

absl::StatusOr<size_t> ContentReader::Read(char* buffer, size_t size) {
  size = static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(size), row_.size - position_));
  if (size == 0) {
    if (crc_ != row_.crc) return Damaged("fails its checksum");
    return 0;
  }
  ssize_t count;
  do {
    count = read(fd_.get(), buffer, size);
  } while (count < 0 && errno == EINTR);
  if (count < 0 && errno == EIO) return Damaged("cannot be read");
  if (count < 0) return absl::ErrnoToStatus(errno, "reading an array's file");
  if (count == 0) return Damaged("is too short");
  crc_ = Crc32c(buffer, count, crc_);
  position_ += count;
  return static_cast<size_t>(count);
}

}  // namespace stride::durable
