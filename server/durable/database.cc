#include "server/durable/database.h"

#include <fcntl.h>
#include <sqlite3.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "server/base/crc32c.h"
#include "server/base/unique_fd.h"

namespace stride::durable {
namespace {

constexpr char kFileName[] = "rows.db";

constexpr int kVersion = 1;

constexpr char kSchema[] = R"(
CREATE TABLE ids(next INTEGER NOT NULL, attempts INTEGER NOT NULL);
INSERT INTO ids VALUES(1, 0);
CREATE TABLE contents(id INTEGER PRIMARY KEY, size INTEGER NOT NULL, crc INTEGER NOT NULL, device TEXT NOT NULL);
CREATE TABLE arrays(id INTEGER PRIMARY KEY, content INTEGER NOT NULL, record BLOB NOT NULL, row_crc INTEGER NOT NULL);
CREATE INDEX arrays_of_content ON arrays(content);
CREATE TABLE jobs(id INTEGER PRIMARY KEY, accepted BLOB NOT NULL, row_crc INTEGER NOT NULL,
  changed_kept INTEGER NOT NULL DEFAULT 0, cancel_requested INTEGER NOT NULL DEFAULT 0,
  ended BLOB NOT NULL DEFAULT x'', ended_crc INTEGER NOT NULL DEFAULT 0);
PRAGMA user_version = 1;
)";

// Added in a later version: created where absent, and ignored by earlier versions.
constexpr char kDefinitions[] =
    "CREATE TABLE IF NOT EXISTS definitions(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, record "
    "BLOB NOT NULL, row_crc INTEGER NOT NULL)";

// SQLite detects a torn page only where its structure is damaged.
uint32_t RowCrc(uint64_t id, uint64_t other, const std::string& bytes) {
  uint64_t numbers[] = {id, other};
  return Crc32c(bytes.data(), bytes.size(), Crc32c(numbers, sizeof(numbers)));
}

absl::Status StatusOf(sqlite3* db, int code) {
  std::string text = absl::StrCat(sqlite3_errstr(code), ": ", sqlite3_errmsg(db));
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(text);
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(text);
    default:
      return absl::UnavailableError(text);
  }
}

// One statement: prepared, its parameters bound in order, then stepped.
class Statement {
 public:
  Statement(sqlite3* db, const char* sql) : db_(db) {
    code_ = sqlite3_prepare_v2(db, sql, -1, &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& Bind(uint64_t value) {
    if (code_ == SQLITE_OK)
      code_ = sqlite3_bind_int64(statement_, ++bound_, static_cast<sqlite3_int64>(value));
    return *this;
  }
  Statement& Bind(const std::string& bytes) {
    if (code_ == SQLITE_OK) {
      code_ = sqlite3_bind_blob64(statement_, ++bound_, bytes.data(), bytes.size(), SQLITE_STATIC);
    }
    return *this;
  }
  // True: there is a row.
  bool Next() {
    if (code_ == SQLITE_OK || code_ == SQLITE_ROW) code_ = sqlite3_step(statement_);
    return code_ == SQLITE_ROW;
  }
  uint64_t Number(int column) const {
    return static_cast<uint64_t>(sqlite3_column_int64(statement_, column));
  }
  std::string Bytes(int column) const {
    const void* bytes = sqlite3_column_blob(statement_, column);
    return bytes == nullptr ? std::string()
                            : std::string(static_cast<const char*>(bytes),
                                          sqlite3_column_bytes(statement_, column));
  }
  absl::Status Done() {
    while (Next()) {
    }
    return status();
  }
  absl::Status status() const {
    bool good = code_ == SQLITE_OK || code_ == SQLITE_ROW || code_ == SQLITE_DONE;
    return good ? absl::OkStatus() : StatusOf(db_, code_);
  }

 private:
  sqlite3* const db_;
  sqlite3_stmt* statement_ = nullptr;
  int code_;
  int bound_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const Folder& folder) {
  // SQLite would make it readable for others; the log gets the same mode.
  auto file = folder.OpenFile(kFileName, O_RDWR | O_CREAT | O_NONBLOCK);
  if (!file.ok()) return file.status();
  // SQLite takes only a path: this one contains no link, and SQLITE_OPEN_NOFOLLOW refuses later
  // ones.
  auto path = folder.Path();
  if (!path.ok()) return path.status();
  sqlite3* db = nullptr;
  int code =
      sqlite3_open_v2(absl::StrCat(*path, "/", kFileName).c_str(), &db,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, nullptr);
  std::unique_ptr<Database> database(new Database(db));
  if (code != SQLITE_OK) return StatusOf(db, code);
  if (absl::Status status = database->Prepare(); !status.ok()) return status;
  return database;
}

Database::~Database() { sqlite3_close(db_); }

absl::Status Database::Run(const char* sql) {
  int code = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : StatusOf(db_, code);
}

absl::Status Database::Prepare() {
  // Exclusive: no other process has it open, and the log needs no shared memory. Full: a commit is
  // on disk when it returns.
  for (const char* pragma : {"PRAGMA locking_mode=EXCLUSIVE", "PRAGMA journal_mode=WAL",
                             "PRAGMA synchronous=FULL", "PRAGMA trusted_schema=OFF"}) {
    if (absl::Status status = Run(pragma); !status.ok()) return status;
  }
  Statement check(db_, "PRAGMA quick_check(1)");
  if (!check.Next()) {
    absl::Status status = check.status();
    return status.ok() ? absl::DataLossError("it cannot be checked") : status;
  }
  if (check.Bytes(0) != "ok") return absl::DataLossError(check.Bytes(0));
  if (absl::Status status = check.Done(); !status.ok()) return status;
  Statement version(db_, "PRAGMA user_version");
  uint64_t found = version.Next() ? version.Number(0) : 0;
  if (absl::Status status = version.Done(); !status.ok()) return status;
  if (found != 0 && found != kVersion)
    return absl::DataLossError(absl::StrCat("it is of version ", found));
  absl::Status made;
  if (found == 0) made = Run(absl::StrCat("BEGIN;", kSchema, "COMMIT;").c_str());
  return made.ok() ? Run(kDefinitions) : made;
}

absl::StatusOr<Rows> Database::Read(std::vector<std::string>* damage) {
  Rows rows;
  Statement contents(db_, "SELECT id, size, crc, device FROM contents");
  while (contents.Next()) {
    uint64_t id = contents.Number(0);
    rows.contents[id] = {id, static_cast<int64_t>(contents.Number(1)),
                         static_cast<uint32_t>(contents.Number(2)), contents.Bytes(3)};
  }
  Statement arrays(db_, "SELECT id, content, record, row_crc FROM arrays");
  while (arrays.Next()) {
    ArrayRow row{arrays.Number(0), arrays.Number(1), arrays.Bytes(2)};
    if (arrays.Number(3) == RowCrc(row.id, row.content, row.record)) {
      rows.arrays[row.id] = std::move(row);
    } else {
      damage->push_back(absl::StrCat("the row of array ", row.id));
    }
  }
  Statement jobs(db_,
                 "SELECT id, accepted, row_crc, changed_kept, cancel_requested, ended, ended_crc "
                 "FROM jobs");
  while (jobs.Next()) {
    JobRow row{jobs.Number(0), jobs.Bytes(1), jobs.Number(3) != 0, jobs.Number(4) != 0,
               jobs.Bytes(5)};
    bool whole = jobs.Number(2) == RowCrc(row.id, 0, row.accepted) &&
                 (row.ended.empty() || jobs.Number(6) == RowCrc(row.id, 0, row.ended));
    if (whole) {
      rows.jobs[row.id] = std::move(row);
    } else {
      damage->push_back(absl::StrCat("the row of job ", row.id));
    }
  }
  Statement definitions(db_, "SELECT id, kind, record, row_crc FROM definitions");
  while (definitions.Next()) {
    DefinitionRow row{definitions.Number(0), definitions.Number(1), definitions.Bytes(2)};
    if (definitions.Number(3) == RowCrc(row.id, row.kind, row.record)) {
      rows.definitions[row.id] = std::move(row);
    } else {
      damage->push_back(absl::StrCat("the row of function or program ", row.id));
    }
  }
  for (const Statement* statement : {&contents, &arrays, &jobs, &definitions}) {
    if (!statement->status().ok()) return statement->status();
  }
  return rows;
}

absl::StatusOr<uint64_t> Database::TakeIds(uint64_t count) {
  Statement statement(db_, "UPDATE ids SET next = next + ? RETURNING next");
  statement.Bind(count);
  uint64_t next = statement.Next() ? statement.Number(0) : 0;
  if (absl::Status status = statement.Done(); !status.ok()) return status;
  if (next < count) return absl::DataLossError("the row of ids is gone");
  return next - count;
}

absl::StatusOr<uint64_t> Database::CountAttempt() {
  Statement statement(db_, "UPDATE ids SET attempts = attempts + 1 RETURNING attempts");
  uint64_t attempts = statement.Next() ? statement.Number(0) : 0;
  if (absl::Status status = statement.Done(); !status.ok()) return status;
  return attempts;
}

absl::Status Database::Apply(absl::Span<const Change> changes, std::vector<uint64_t>* unused) {
  unused->clear();
  if (absl::Status status = Run("BEGIN IMMEDIATE"); !status.ok()) return status;
  absl::Status status;
  bool arrays_changed = false;
  for (const Change& change : changes) {
    if (status.ok()) status = ApplyOne(change);
    arrays_changed = arrays_changed || !change.arrays.empty() || !change.erased_arrays.empty();
  }
  if (status.ok() && arrays_changed) {
    Statement statement(db_,
                        "DELETE FROM contents WHERE NOT EXISTS (SELECT 1 FROM arrays WHERE "
                        "content = contents.id) RETURNING id");
    while (statement.Next()) unused->push_back(statement.Number(0));
    status = statement.status();
  }
  if (status.ok()) status = Run("COMMIT");
  if (!status.ok()) {
    unused->clear();
    Run("ROLLBACK").IgnoreError();  // SQLite may have rolled back already
  }
  return status;
}

absl::Status Database::ApplyOne(const Change& change) {
  auto run = [this](const char* sql, auto... values) {
    Statement statement(db_, sql);
    (statement.Bind(values), ...);
    return statement.Done();
  };
  absl::Status status;
  for (const ContentRow& row : change.contents) {
    status.Update(run("INSERT OR REPLACE INTO contents VALUES(?, ?, ?, ?)", row.id,
                      static_cast<uint64_t>(row.size), uint64_t{row.crc}, row.device));
  }
  for (const ArrayRow& row : change.arrays) {
    status.Update(run("INSERT OR REPLACE INTO arrays VALUES(?, ?, ?, ?)", row.id, row.content,
                      row.record, uint64_t{RowCrc(row.id, row.content, row.record)}));
  }
  for (uint64_t id : change.erased_arrays)
    status.Update(run("DELETE FROM arrays WHERE id = ?", id));
  for (const JobRow& row : change.jobs) {
    status.Update(run("INSERT OR REPLACE INTO jobs VALUES(?, ?, ?, ?, ?, ?, ?)", row.id,
                      row.accepted, uint64_t{RowCrc(row.id, 0, row.accepted)},
                      uint64_t{row.changed_kept}, uint64_t{row.cancel_requested}, row.ended,
                      uint64_t{RowCrc(row.id, 0, row.ended)}));
  }
  for (uint64_t id : change.changed_kept_jobs)
    status.Update(run("UPDATE jobs SET changed_kept = 1 WHERE id = ?", id));
  for (uint64_t id : change.cancelled_jobs)
    status.Update(run("UPDATE jobs SET cancel_requested = 1 WHERE id = ?", id));
  for (const auto& [id, ended] : change.ended_jobs) {
    status.Update(run("UPDATE jobs SET ended = ?, ended_crc = ? WHERE id = ?", ended,
                      uint64_t{RowCrc(id, 0, ended)}, id));
  }
  for (const DefinitionRow& row : change.definitions) {
    status.Update(run("INSERT OR REPLACE INTO definitions VALUES(?, ?, ?, ?)", row.id, row.kind,
                      row.record, uint64_t{RowCrc(row.id, row.kind, row.record)}));
  }
  for (uint64_t id : change.erased_definitions)
    status.Update(run("DELETE FROM definitions WHERE id = ?", id));
  if (change.restored) status.Update(run("UPDATE ids SET attempts = 0"));
  for (uint64_t id : change.erased_jobs) status.Update(run("DELETE FROM jobs WHERE id = ?", id));
  return status;
}

}  // namespace stride::durable
