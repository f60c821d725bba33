#include "server/recovery/journal_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/crash_point.h"
#include "server/base/crc32c.h"

namespace stride::recovery {
namespace {

constexpr uint64_t kMagic = 0x4c4e524a45444952;  // RIDEJRNL
constexpr uint64_t kVersion = 1;

absl::Status Damaged(std::string_view what, uint64_t offset) {
  return absl::DataLossError(
      absl::StrCat("the journal is damaged: ", absl::string_view(what.data(), what.size()),
                   " at byte ", offset));
}

}  // namespace

JournalFile::JournalFile(JournalFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      map_(std::exchange(other.map_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

JournalFile& JournalFile::operator=(JournalFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(map_, other.map_);
  std::swap(size_, other.size_);
  return *this;
}

JournalFile::~JournalFile() { Unmap(); }

void JournalFile::Unmap() {
  if (map_ != nullptr) munmap(map_, size_);
  map_ = nullptr;
}

absl::StatusOr<JournalFile> JournalFile::Create(uint64_t size) {
  JournalFile file;
  file.fd_ = UniqueFd(memfd_create("stride-journal", MFD_CLOEXEC));
  if (!file.fd_.valid()) return absl::ErrnoToStatus(errno, "creating a journal");
  if (absl::Status status = file.Grow(std::max(size, kSmallestFile)); !status.ok()) return status;
  file.header()->magic = kMagic;
  file.header()->version = kVersion;
  file.Clear();
  return file;
}

absl::StatusOr<JournalFile> JournalFile::Open(UniqueFd fd) {
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return absl::ErrnoToStatus(errno, "looking at a journal");
  JournalFile file;
  file.fd_ = std::move(fd);
  uint64_t size = static_cast<uint64_t>(info.st_size);
  if (!S_ISREG(info.st_mode) || size < kFirstBatch) return Damaged("it is too short", size);
  void* map = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd_.get(), 0);
  if (map == MAP_FAILED) return absl::ErrnoToStatus(errno, "mapping a journal");
  file.map_ = static_cast<char*>(map);
  file.size_ = size;
  if (file.header()->magic != kMagic) return Damaged("its mark is missing", 0);
  if (file.header()->version != kVersion) return Damaged("its version is not known", 8);
  return file;
}

uint64_t JournalFile::generation() const {
  return header()->generation.load(std::memory_order_acquire);
}

uint64_t JournalFile::committed() const {
  return header()->committed.load(std::memory_order_acquire);
}

absl::Status JournalFile::Grow(uint64_t size) {
  if (size <= size_) return absl::OkStatus();
  uint64_t wanted = std::max(size, size_ * 2);
  if (ftruncate(fd_.get(), static_cast<off_t>(wanted)) != 0)
    return absl::ErrnoToStatus(errno, "growing the journal");
  void* map = map_ == nullptr
                  ? mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0)
                  : mremap(map_, size_, wanted, MREMAP_MAYMOVE);
  if (map == MAP_FAILED) return absl::ErrnoToStatus(errno, "mapping the journal");
  map_ = static_cast<char*>(map);
  size_ = wanted;
  return absl::OkStatus();
}

void JournalFile::Shrink(uint64_t size) {
  if (size >= size_) return;
  void* map = mremap(map_, size_, size, MREMAP_MAYMOVE);
  if (map == MAP_FAILED) return;
  map_ = static_cast<char*>(map);
  size_ = size;
  // On failure the file is larger than necessary, which is harmless.
  if (ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) return;
}

void JournalFile::Commit(uint64_t begin, uint64_t end) {
  const char* records = at(begin + sizeof(BatchHeader));
  BatchHeader batch{end - begin - sizeof(BatchHeader), 0, 0};
  batch.crc = Crc32c(records, batch.size);
  std::memcpy(at(begin), &batch, sizeof(batch));
  STRIDE_CRASH_POINT("journal.before_commit");
  header()->committed.store(end, std::memory_order_release);
  STRIDE_CRASH_POINT("journal.after_commit");
}

void JournalFile::Clear() {
  header()->generation.store(0, std::memory_order_release);
  header()->committed.store(kFirstBatch, std::memory_order_release);
  header()->attempts.store(0, std::memory_order_relaxed);
}

void JournalFile::SetGeneration(uint64_t generation) {
  header()->generation.store(generation, std::memory_order_release);
}

uint32_t JournalFile::CountAttempt() { return ++header()->attempts; }
void JournalFile::ResetAttempts() { header()->attempts = 0; }

absl::Status JournalFile::Read(
    const std::function<void(uint64_t, bool, uint64_t, uint32_t)>& record) const {
  uint64_t end = committed();
  if (end < kFirstBatch || end > size_ || end % 8 != 0) return Damaged("its end is nowhere", end);
  for (uint64_t at_batch = kFirstBatch; at_batch < end;) {
    BatchHeader batch;
    if (end - at_batch < sizeof(batch)) return Damaged("a batch is cut off", at_batch);
    std::memcpy(&batch, at(at_batch), sizeof(batch));
    uint64_t position = at_batch + sizeof(batch);
    if (batch.size > end - position || batch.size % 8 != 0)
      return Damaged("a batch has no such size", at_batch);
    if (Crc32c(at(position), batch.size) != batch.crc)
      return Damaged("a batch has not what was written", at_batch);
    at_batch = position + batch.size;
    while (position < at_batch) {
      RecordHeader header;
      if (at_batch - position < sizeof(header)) return Damaged("a record is cut off", position);
      std::memcpy(&header, at(position), sizeof(header));
      position += sizeof(header);
      bool erased = header.size == kErased;
      uint64_t size = erased ? 0 : header.size;
      if (PadTo8(size) > at_batch - position) return Damaged("a record is cut off", position);
      record(header.key, erased, position, static_cast<uint32_t>(size));
      position += PadTo8(size);
    }
  }
  return absl::OkStatus();
}

}  // namespace stride::recovery
