#include "server/api/operation_log.h"

#include <utility>

namespace stride::api {

void OperationLog::Accepted(std::shared_ptr<scheduler::Ticket> ticket) {
  uint64_t number = 0;
  {
    std::lock_guard lock(mutex_);
    number = ++last_;
    unfinished_.insert(number);
  }
  scheduler::Ticket& operation = *ticket;
  operation.OnDone([self = shared_from_this(), number, ticket = std::move(ticket)] {
    self->Ended(number, ticket->Wait(absl::InfiniteFuture()));
  });
}

void OperationLog::Refused(absl::Status error) {
  std::lock_guard lock(mutex_);
  Note(++last_, std::move(error));
}

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

void OperationLog::Ended(uint64_t number, absl::Status status) {
  std::lock_guard lock(mutex_);
  unfinished_.erase(number);
  Note(number, std::move(status));
  ended_.notify_all();
}

void OperationLog::Note(uint64_t number, absl::Status status) {
  if (status.ok()) return;
  auto mark = marks_.lower_bound(number);
  auto [it, added] = errors_.try_emplace(mark == marks_.end() ? kOpen : *mark, number, status);
  if (!added && number < it->second.first) it->second = {number, std::move(status)};
}

absl::Status OperationLog::WaitFor(uint64_t number, absl::Time deadline) {
  std::unique_lock lock(mutex_);
  auto ended = [&] { return unfinished_.empty() || *unfinished_.begin() > number; };
  if (deadline == absl::InfiniteFuture()) {
    ended_.wait(lock, ended);
  } else if (!ended_.wait_until(lock, absl::ToChronoTime(deadline), ended)) {
    return absl::DeadlineExceededError("");
  }
  marks_.erase(number);
  auto error = errors_.extract(number);
  return error.empty() ? absl::OkStatus() : std::move(error.mapped().second);
}

}  // namespace stride::api
