#include "server/audit/audit_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/base/environment.h"
#include "server/base/json_text.h"

namespace stride::audit {
namespace {

absl::StatusOr<UniqueFd> OpenFile(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600));
  if (fd.valid()) return fd;
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot open the audit log ", path));
}

std::string Time(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone());
}

void Add(std::string_view key, const std::string& value, std::string* out) {
  if (value.empty()) return;
  absl::StrAppend(out, ",\"", absl::string_view(key.data(), key.size()), "\":\"", EscapeJson(value),
                  "\"");
}

void Add(std::string_view key, int64_t value, std::string* out) {
  if (value == 0) return;
  absl::StrAppend(out, ",\"", absl::string_view(key.data(), key.size()), "\":", value);
}

}  // namespace

std::string ToJson(const Record& record) {
  std::string out = absl::StrCat("{\"time\":\"", Time(record.time), "\"");
  Add("tenant", record.tenant, &out);
  Add("identity", record.identity, &out);
  Add("peer", record.peer, &out);
  Add("event", record.event, &out);
  Add("resource", record.resource, &out);
  Add("device", record.device, &out);
  if (record.device_seconds > 0)
    absl::StrAppendFormat(&out, ",\"device_seconds\":%.9f", record.device_seconds);
  Add("operations", record.num_operations, &out);
  Add("bytes_up", record.bytes_up, &out);
  Add("bytes_down", record.bytes_down, &out);
  Add("outcome", record.outcome, &out);
  Add("reason", record.reason, &out);
  return out + "}";
}

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(std::string path) {
  auto file = OpenFile(path);
  if (!file.ok()) return file.status();
  std::unique_ptr<AuditLog> log(new AuditLog(std::move(path), *std::move(file)));
  log->thread_ = std::thread([raw = log.get()] { raw->Run(); });
  return log;
}

AuditLog::~AuditLog() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  thread_.join();
}

void AuditLog::Write(Record record) {
  absl::MutexLock lock(&mutex_);
  if (waiting_.size() >= kMaxWaiting) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  waiting_.push_back(std::move(record));
}

void AuditLog::Reopen() {
  absl::MutexLock lock(&mutex_);
  reopen_ = true;
}

void AuditLog::Run() {
  for (;;) {
    std::deque<Record> records;
    bool reopen = false, closing = false;
    {
      auto woken = [this] { return !waiting_.empty() || reopen_ || closing_; };
      absl::MutexLock lock(&mutex_, absl::Condition(&woken));
      records.swap(waiting_);
      reopen = std::exchange(reopen_, false);
      closing = closing_;
    }
    std::string text;
    for (const Record& record : records) absl::StrAppend(&text, ToJson(record), "\n");
    // Append to the file that was open when the records were written: rotation loses no line.
    Append(text, static_cast<int64_t>(records.size()));
    if (reopen) {
      if (auto file = OpenFile(path_); file.ok()) file_ = *std::move(file);
    }
    if (closing && records.empty()) return;
  }
}

void AuditLog::Append(const std::string& text, int64_t num_lines) {
  int64_t dropped = num_dropped();
  std::string all;
  if (dropped > dropped_told_) {
    all = absl::StrCat("{\"time\":\"", Time(WallNow()),
                       "\",\"event\":\"dropped\",\"lines\":", dropped - dropped_told_, "}\n");
  }
  all += text;
  size_t done = 0;
  while (done < all.size()) {
    ssize_t wrote = write(file_.get(), all.data() + done, all.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      // The file may end with a partial line; the next record begins on a new line.
      dropped_.fetch_add(num_lines, std::memory_order_relaxed);
      if (done > 0) (void)!write(file_.get(), "\n", 1);
      return;
    }
    done += static_cast<size_t>(wrote);
  }
  dropped_told_ = dropped;
}

}  // namespace stride::audit
