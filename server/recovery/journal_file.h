#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/unique_fd.h"

namespace stride::recovery {

// One memory file of a journal: a header, then batches of records. Growable; mapped as a whole.
//
//   header: magic, version, generation (0: not valid yet), commit offset, attempts
//   batch:  size of its records, CRC-32C of them, then the records
//   record: key, size of its bytes or kErased, then the bytes, padded to 8
class JournalFile {
 public:
  static constexpr uint64_t kFirstBatch = 4096;
  static constexpr uint64_t kSmallestFile = uint64_t{1} << 20;
  static constexpr uint32_t kErased = UINT32_MAX;

  struct BatchHeader {
    uint64_t size;
    uint32_t crc;
    uint32_t unused;
  };
  struct RecordHeader {
    uint64_t key;
    uint32_t size;
    uint32_t unused;
  };

  JournalFile() = default;
  JournalFile(JournalFile&& other) noexcept;
  JournalFile& operator=(JournalFile&& other) noexcept;
  ~JournalFile();

  static absl::StatusOr<JournalFile> Create(uint64_t size = kSmallestFile);
  // Maps an existing file. DATA_LOSS when it is not a journal file.
  static absl::StatusOr<JournalFile> Open(UniqueFd fd);

  bool valid() const { return map_ != nullptr; }
  int fd() const { return fd_.get(); }
  char* at(uint64_t offset) const { return map_ + offset; }
  uint64_t size() const { return size_; }
  uint64_t generation() const;
  uint64_t committed() const;

  // Grows the file to at least `size` bytes; invalidates pointers into it.
  absl::Status Grow(uint64_t size);
  // Returns memory beyond `size` to the kernel; nothing beyond may be committed.
  void Shrink(uint64_t size);

  // Seals the records in [begin + sizeof(BatchHeader), end) as a batch and makes it visible.
  void Commit(uint64_t begin, uint64_t end);
  // Empties the file; it is not valid until SetGeneration.
  void Clear();
  void SetGeneration(uint64_t generation);

  uint32_t CountAttempt();
  void ResetAttempts();

  // Calls `record` with each committed record in order; its bytes are `size` bytes at `offset`.
  // Verifies each batch first; DATA_LOSS at the first wrong checksum or size.
  absl::Status Read(const std::function<void(uint64_t key, bool erased, uint64_t offset,
                                             uint32_t size)>& record) const;

 private:
  struct Header {
    uint64_t magic;
    uint64_t version;
    std::atomic<uint64_t> generation;
    std::atomic<uint64_t> committed;
    std::atomic<uint32_t> attempts;
  };
  Header* header() const { return reinterpret_cast<Header*>(map_); }
  void Unmap();

  UniqueFd fd_;
  char* map_ = nullptr;
  uint64_t size_ = 0;
};

constexpr uint64_t PadTo8(uint64_t size) { return (size + 7) & ~uint64_t{7}; }

}  // namespace stride::recovery
