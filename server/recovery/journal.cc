#include "server/recovery/journal.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/crash_point.h"

namespace stride::recovery {
namespace {

using RecordHeader = JournalFile::RecordHeader;
using BatchHeader = JournalFile::BatchHeader;

// Below this size compaction does not pay.
constexpr uint64_t kCompactFrom = JournalFile::kSmallestFile / 4 * 3;

}  // namespace

absl::Status Journal::StoreFile(int index, const JournalFile& file) {
  return fd_store_->Store(FileName(name_, index), file.fd());
}

std::string Journal::FileName(const std::string& journal, int file) {
  return absl::StrCat(journal, "-", file);
}

void Journal::LetGo() {
  for (int i = 0; i < 2; ++i) fd_store_->Remove(FileName(name_, i));
}

absl::StatusOr<std::unique_ptr<Journal>> Journal::Create(fd_store::FdStore* fd_store,
                                                         const std::string& name) {
  std::unique_ptr<Journal> journal(new Journal(fd_store, name));
  auto first = JournalFile::Create();
  if (!first.ok()) return first.status();
  auto second = JournalFile::Create();
  if (!second.ok()) return second.status();
  journal->file_ = *std::move(first);
  journal->other_ = *std::move(second);
  journal->file_.SetGeneration(1);
  journal->end_ = JournalFile::kFirstBatch;
  // Store the second file first: a valid first file then implies both.
  if (absl::Status status = journal->StoreFile(1, journal->other_); !status.ok()) return status;
  if (absl::Status status = journal->StoreFile(0, journal->file_); !status.ok()) return status;
  return journal;
}

absl::StatusOr<std::unique_ptr<Journal>> Journal::Open(fd_store::FdStore* fd_store,
                                                       const std::string& name, UniqueFd first,
                                                       UniqueFd second) {
  std::unique_ptr<Journal> journal(new Journal(fd_store, name));
  JournalFile files[2];
  UniqueFd* descriptors[2] = {&first, &second};
  for (int i = 0; i < 2; ++i) {
    // The missing file may have been the newer one.
    if (!descriptors[i]->valid())
      return absl::DataLossError(
          absl::StrCat("the journal is damaged: ", FileName(name, i), " is missing"));
    auto file = JournalFile::Open(std::move(*descriptors[i]));
    if (!file.ok()) return file.status();
    files[i] = *std::move(file);
  }
  int newer = files[1].generation() > files[0].generation() ? 1 : 0;
  if (files[newer].generation() == 0)
    return absl::DataLossError("the journal is damaged: no file of it is valid");
  journal->file_ = std::move(files[newer]);
  journal->other_ = std::move(files[1 - newer]);
  if (absl::Status status = journal->ReadBack(); !status.ok()) return status;
  return journal;
}

absl::Status Journal::ReadBack() {
  end_ = file_.committed();
  return file_.Read([this](uint64_t key, bool erased, uint64_t offset, uint32_t size) {
    Forget(key);
    if (erased) return;
    *index_.Insert(key).first = {offset, size};
    live_bytes_ += sizeof(RecordHeader) + PadTo8(size);
  });
}

void Journal::Forget(uint64_t key) {
  const RecordIndex::Place* found = index_.Find(key);
  if (found == nullptr) return;
  live_bytes_ -= sizeof(RecordHeader) + PadTo8(found->size);
  index_.Erase(key);
}

char* Journal::Append(uint64_t key, uint32_t size, bool erased) {
  uint64_t begin = in_batch_ ? end_ : end_ + sizeof(BatchHeader);
  uint64_t bytes = begin + sizeof(RecordHeader);
  uint64_t end = bytes + PadTo8(size);
  if (broken_.ok()) broken_ = file_.Grow(end);
  if (!broken_.ok()) return nullptr;
  in_batch_ = true;
  RecordHeader header{key, erased ? JournalFile::kErased : size, 0};
  std::memcpy(file_.at(begin), &header, sizeof(header));
  // The checksum includes the padding of the last word.
  if (size % 8 != 0) std::memset(file_.at(end - 8), 0, 8);
  end_ = end;
  return file_.at(bytes);
}

char* Journal::Set(uint64_t key, uint32_t size) {
  char* room = Append(key, size, /*erased=*/false);
  if (room == nullptr) return nullptr;
  auto [place, is_new] = index_.Insert(key);
  if (!is_new) live_bytes_ -= sizeof(RecordHeader) + PadTo8(place->size);
  *place = {static_cast<uint64_t>(room - file_.at(0)), size};
  live_bytes_ += sizeof(RecordHeader) + PadTo8(size);
  return room;
}

void Journal::Set(uint64_t key, std::string_view bytes) {
  char* room = Set(key, static_cast<uint32_t>(bytes.size()));
  if (room != nullptr && !bytes.empty()) std::memcpy(room, bytes.data(), bytes.size());
}

void Journal::Erase(uint64_t key) {
  if (!Has(key)) return;
  if (Append(key, 0, /*erased=*/true) != nullptr) Forget(key);
}

absl::Status Journal::Commit() {
  if (!broken_.ok()) return broken_;
  if (!std::exchange(in_batch_, false)) return absl::OkStatus();
  file_.Commit(file_.committed(), end_);
  if (end_ >= kCompactFrom && live_bytes_ < end_ / 4) Compact();
  return broken_;
}

void Journal::Compact() {
  STRIDE_CRASH_POINT("journal.before_compaction");
  other_.Clear();
  if (!other_.Grow(JournalFile::kFirstBatch + sizeof(BatchHeader) + live_bytes_).ok())
    return;  // compaction is optional
  uint64_t begin = JournalFile::kFirstBatch;
  uint64_t position = begin + sizeof(BatchHeader);
  index_.ForEach([&](uint64_t key, RecordIndex::Place& place) {
    RecordHeader header{key, place.size, 0};
    std::memcpy(other_.at(position), &header, sizeof(header));
    position += sizeof(header);
    std::memcpy(other_.at(position), file_.at(place.offset), PadTo8(place.size));
    place.offset = position;
    position += PadTo8(place.size);
  });
  other_.Commit(begin, position);
  STRIDE_CRASH_POINT("journal.compaction");
  other_.SetGeneration(file_.generation() + 1);
  STRIDE_CRASH_POINT("journal.after_compaction");
  std::swap(file_, other_);
  wanted_ = std::max(wanted_, end_);
  end_ = position;
}

void Journal::Trim() {
  if (!broken_.ok() || in_batch_) return;
  constexpr uint64_t kPage = 4096;
  wanted_ = std::max({JournalFile::kSmallestFile, end_, wanted_ - wanted_ / 8});
  for (JournalFile* file : {&file_, &other_}) {
    if (file->size() / 2 >= wanted_) file->Shrink((wanted_ + kPage - 1) / kPage * kPage);
  }
}

void Journal::ForEach(const std::function<void(uint64_t, std::string_view)>& visit) const {
  index_.ForEach([&](uint64_t key, const RecordIndex::Place& place) {
    visit(key, {file_.at(place.offset), place.size});
  });
}

}  // namespace stride::recovery
