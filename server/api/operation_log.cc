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

uint64_t OperationLog::last() const {
  std::lock_guard lock(mutex_);
  return last_;
}

void OperationLog::Ended(uint64_t number, absl::Status status) {
  std::lock_guard lock(mutex_);
  unfinished_.erase(number);
  Note(number, std::move(status));
  ended_.notify_all();
}

void OperationLog::Note(uint64_t number, absl::Status status) {
  if (status.ok() || (first_failed_ != 0 && first_failed_ < number)) return;
  first_failed_ = number;
  first_error_ = std::move(status);
}

absl::Status OperationLog::WaitFor(uint64_t number, absl::Time deadline) {
  std::unique_lock lock(mutex_);
  auto ended = [&] { return unfinished_.empty() || *unfinished_.begin() > number; };
  if (deadline == absl::InfiniteFuture()) {
    ended_.wait(lock, ended);
  } else if (!ended_.wait_until(lock, absl::ToChronoTime(deadline), ended)) {
    return absl::DeadlineExceededError("");
  }
  return first_failed_ != 0 && first_failed_ <= number ? first_error_ : absl::OkStatus();
}

}  // namespace stride::api
