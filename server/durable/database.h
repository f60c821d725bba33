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

// The rows, in an SQLite database with a write-ahead log. One thread at a time; every method blocks
// for the disk.
class Database {
 public:
  // Makes it when there is none. DATA_LOSS when what is there is damaged or of a later version.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const Folder& folder);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Everything. Rows that are not as they were written are left out and told in `damage`, a line
  // each.
  absl::StatusOr<Rows> Read(std::vector<std::string>* damage);
  // Sets aside `count` ids that no earlier call has given; the first of them.
  absl::StatusOr<uint64_t> TakeIds(uint64_t count);
  // How often it was opened since a change last said that all was restored from it.
  absl::StatusOr<uint64_t> CountAttempt();
  // All of them, in order, as one transaction. `unused` gets the contents that no array has any
  // more, whose rows are gone. After an error nothing has changed.
  absl::Status Apply(absl::Span<const Change> changes, std::vector<uint64_t>* unused);

 private:
  explicit Database(sqlite3* db) : db_(db) {}
  absl::Status Prepare();
  absl::Status Run(const char* sql);
  absl::Status ApplyOne(const Change& change);

  sqlite3* const db_;
};

}  // namespace stride::durable
