#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/folder.h"
#include "server/base/unique_fd.h"
#include "server/durable/rows.h"

namespace stride::durable {

// Files with the bytes of arrays and nothing else. Names are numbers, so that no client's text is
// part of a path. Mode 0600.
std::string ContentFileName(uint64_t id);
// The id in a file's name; 0: the name is not a content file's.
uint64_t ContentOfFileName(std::string_view name);
// Whether the name is that of a content file being written.
bool IsUnfinishedContent(std::string_view name);

// Writes one content file in `folder`. It appears under its name whole or not at all. For one
// thread; blocks for the disk.
class ContentWriter {
 public:
  static absl::StatusOr<std::unique_ptr<ContentWriter>> Create(std::shared_ptr<const Folder> folder,
                                                               uint64_t id);
  // Removes an unfinished file.
  ~ContentWriter();
  absl::Status Write(std::string_view bytes);
  // Call after the last Write: returns once the file is on disk under its name.
  absl::Status Finish();

  int64_t size() const { return size_; }
  uint32_t crc() const { return crc_; }

 private:
  ContentWriter(std::shared_ptr<const Folder> folder, uint64_t id);
  const std::shared_ptr<const Folder> folder_;  // shared: a writer may outlive its store
  const std::string name_, temporary_;
  UniqueFd fd_;
  int64_t size_ = 0;
  uint32_t crc_ = 0;
  bool finished_ = false;
};

// Reads one content file. DATA_LOSS when it is absent or differs from its row. That is certain only
// at the end, so the caller must not expose any of its bytes before.
class ContentReader {
 public:
  static absl::StatusOr<std::unique_ptr<ContentReader>> Open(const Folder& folder,
                                                             const ContentRow& row);
  // The next bytes; 0 at the end, once the checksum matches.
  absl::StatusOr<size_t> Read(char* buffer, size_t size);

 private:
  explicit ContentReader(ContentRow row) : row_(std::move(row)) {}
  const ContentRow row_;
  UniqueFd fd_;
  int64_t position_ = 0;
  uint32_t crc_ = 0;
};

}  // namespace stride::durable
