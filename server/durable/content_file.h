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

// Files of arrays' bytes, nothing else in them; named by number, so that no client's text is part
// of a path. Mode 0600.
std::string ContentFileName(uint64_t id);
// The id that a file's name tells; 0: it is no content's.
uint64_t ContentOfFileName(std::string_view name);
// Whether it is the name of one that is being written.
bool IsUnfinishedContent(std::string_view name);

// Writes one in `folder`. Under its name it appears whole, or not at all. One
// thread; blocks for the disk.
class ContentWriter {
 public:
  static absl::StatusOr<std::unique_ptr<ContentWriter>> Create(std::shared_ptr<const Folder> folder,
                                                               uint64_t id);
  // Removes what was not finished.
  ~ContentWriter();
  absl::Status Write(std::string_view bytes);
  // Once all is written: on disk and under its name.
  absl::Status Finish();

  int64_t size() const { return size_; }
  uint32_t crc() const { return crc_; }

 private:
  ContentWriter(std::shared_ptr<const Folder> folder, uint64_t id);
  const std::shared_ptr<const Folder> folder_;  // a writer may outlive its store
  const std::string name_, temporary_;
  UniqueFd fd_;
  int64_t size_ = 0;
  uint32_t crc_ = 0;
  bool finished_ = false;
};

// Reads one. DATA_LOSS when it is not there or not what its row says: known for certain only once
// all was read, so nothing of it may be shown before.
class ContentReader {
 public:
  static absl::StatusOr<std::unique_ptr<ContentReader>> Open(const Folder& folder,
                                                             const ContentRow& row);
  // The next bytes; 0 at the end, when all was as it was written.
  absl::StatusOr<size_t> Read(char* buffer, size_t size);

 private:
  explicit ContentReader(ContentRow row) : row_(std::move(row)) {}
  const ContentRow row_;
  UniqueFd fd_;
  int64_t position_ = 0;
  uint32_t crc_ = 0;
};

}  // namespace stride::durable
