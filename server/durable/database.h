#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/base/folder.h"
#include "server/durable/rows.h"

struct sqlite3;

namespace stride::durable {

// The rows, in an SQLite database with a write-ahead log. For one thread at a time; each method
// blocks for the disk.
class Database {
 public:
  // Creates the database if there is none. DATA_LOSS when it is damaged or of a later version.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const Folder& folder);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Reads everything. Rows with a wrong checksum are left out; `damage` gets a line for each.
  absl::StatusOr<Rows> Read(std::vector<std::string>* damage);
  // Reserves `count` ids that no earlier call has reserved; returns the first.
  absl::StatusOr<uint64_t> TakeIds(uint64_t count);
  // Number of openings since a Change last reported that all was restored.
  absl::StatusOr<uint64_t> CountAttempt();
  // Applies all changes in order, in one transaction. `unused` gets the contents that no array
  // references any more; their rows are erased. After an error nothing has changed.
  absl::Status Apply(absl::Span<const Change> changes, std::vector<uint64_t>* unused);

 private:
  explicit Database(sqlite3* db) : db_(db) {}
  absl::Status Prepare();
  absl::Status Run(const char* sql);
  absl::Status ApplyOne(const Change& change);

  sqlite3* const db_;
};

}  // namespace stride::durable
