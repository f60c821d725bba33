#include "server/api/operation_log.h"

#include <utility>

#include "server/base/steady_time.h"

namespace stride::api {

std::shared_ptr<OperationLog::Entry> OperationLog::Enter() {
  std::lock_guard lock(mutex_);
  Entry& entry = entries_.emplace_back(Entry{this, ++last_});
  return std::shared_ptr<Entry>(shared_from_this(), &entry);
}

void OperationLog::Accepted(engine::OperationHandle& handle, engine::SubmitBatch* batch) {
  handle.OnDone(
      [entry = Enter()](const absl::Status& status) { entry->log->Ended(*entry, status); }, batch);
}

void OperationLog::Refused(const absl::Status& error) { Ended(*Enter(), error); }

uint64_t OperationLog::Mark() {
  std::lock_guard lock(mutex_);
  marks_.insert(last_);
  auto open = errors_.extract(kOpen);
  if (!open.empty()) {
    open.key() = last_;
    errors_.insert(std::move(open));
  }
  return last_;
}

void OperationLog::Ended(Entry& entry, const absl::Status& status) {
  std::lock_guard lock(mutex_);
  entry.ended = true;
  if (!status.ok()) Note(entry.number, status);
  while (!entries_.empty() && entries_.front().ended) entries_.pop_front();
  if (EndedUpTo(awaited_)) ended_.Notify();
}

void OperationLog::Note(uint64_t number, const absl::Status& status) {
  auto mark = marks_.lower_bound(number);
  auto [it, added] = errors_.try_emplace(mark == marks_.end() ? kOpen : *mark, number, status);
  if (!added && number < it->second.first) it->second = {number, status};
}

bool OperationLog::AwaitEnd(uint64_t number, SteadyTime deadline,
                            std::unique_lock<std::mutex>& lock) {
  awaited_ = number;
  const bool ended = ended_.Wait(lock, deadline, [&] { return EndedUpTo(number); });
  awaited_ = UINT64_MAX;
  return ended;
}

bool OperationLog::HaveEnded(uint64_t number, SteadyTime deadline) {
  std::unique_lock lock(mutex_);
  return AwaitEnd(number, deadline, lock);
}

absl::Status OperationLog::WaitFor(uint64_t number, SteadyTime deadline) {
  std::unique_lock lock(mutex_);
  if (!AwaitEnd(number, deadline, lock)) return absl::DeadlineExceededError("");
  marks_.erase(number);
  auto error = errors_.extract(number);
  return error.empty() ? absl::OkStatus() : std::move(error.mapped().second);
}

}  // namespace stride::api
