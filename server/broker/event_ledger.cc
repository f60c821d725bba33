#include "server/broker/event_ledger.h"

#include <utility>

#include "server/base/printed_text.h"

namespace stride::broker {
namespace {

absl::Status Lie(const char* what) { return absl::InvalidArgumentError(what); }

}  // namespace

uint64_t EventLedger::AddCopy(CopyDone done) {
  copies_.emplace(++last_copy_, std::move(done));
  return last_copy_;
}

bool EventLedger::AddLoad(uint64_t module, Worker::LoadDone loaded) {
  return loads_.emplace(module, std::move(loaded)).second;
}

bool EventLedger::AddArena(uint64_t arena) { return arenas_.emplace(arena, std::nullopt).second; }

absl::Status EventLedger::CheckTask(const wire::TaskResult& result) {
  if (result.sequence() != last_result_ + 1) return Lie("a result out of order");
  if (result.sequence() > last_submitted_) return Lie("the result of a task that was not sent");
  if (!(result.run_seconds() >= 0 && result.run_seconds() < 1e9)) {
    return Lie("a run time that is none");
  }
  last_result_ = result.sequence();
  return absl::OkStatus();
}

absl::Status EventLedger::CheckPrinted(const wire::Printed& printed) {
  if (printed.sequence() <= last_result_ || printed.sequence() > last_submitted_)
    return Lie("text of a task that is not in flight");
  // Tasks end in order, and a task's text arrives when it ends.
  if (printed.sequence() < last_printed_) return Lie("text out of order");
  if (printed.sequence() > last_printed_) printed_bytes_ = 0;
  last_printed_ = printed.sequence();
  if (printed.text().empty() && printed.dropped_lines() == 0) return Lie("text that is none");
  printed_bytes_ += printed.text().size();
  if (printed_bytes_ > kMaxPrintedBytes) return Lie("more text than a task may print");
  return absl::OkStatus();
}

absl::Status EventLedger::TakeCancel(uint64_t sequence) {
  if (cancels_.erase(sequence) > 0) return absl::OkStatus();
  return Lie("the answer to a cancel that was not sent");
}

absl::StatusOr<std::vector<EventLedger::CopyDone>> EventLedger::TakeCopies(
    const wire::CopiesDone& done) {
  std::vector<CopyDone> taken;
  for (uint64_t id : done.ids()) {
    auto found = copies_.find(id);
    if (found == copies_.end()) {
      // Copies taken before still need an answer: they fail with the rest.
      for (CopyDone& copy : taken) AddCopy(std::move(copy));
      return Lie("the end of a copy that is not in flight");
    }
    taken.push_back(std::move(found->second));
    copies_.erase(found);
  }
  return taken;
}

absl::StatusOr<Worker::LoadDone> EventLedger::TakeLoad(uint64_t module) {
  auto found = loads_.find(module);
  if (found == loads_.end()) return Lie("the load of a module that was not sent");
  Worker::LoadDone loaded = std::move(found->second);
  loads_.erase(found);
  return loaded;
}

absl::Status EventLedger::PutArena(uint64_t arena, absl::StatusOr<UniqueFd> result) {
  auto found = arenas_.find(arena);
  if (found == arenas_.end() || found->second.has_value()) {
    return Lie("an arena that was not asked for");
  }
  found->second = std::move(result);
  return absl::OkStatus();
}

bool EventLedger::ArenaAnswered(uint64_t arena) const {
  auto found = arenas_.find(arena);
  return found == arenas_.end() || found->second.has_value();
}

absl::StatusOr<UniqueFd> EventLedger::TakeArena(uint64_t arena) {
  auto found = arenas_.find(arena);
  std::optional<absl::StatusOr<UniqueFd>> result = std::move(found->second);
  arenas_.erase(found);
  if (!result.has_value()) return absl::DeadlineExceededError("no answer");
  return *std::move(result);
}

std::vector<EventLedger::CopyDone> EventLedger::TakeAllCopies() {
  std::vector<CopyDone> taken;
  for (auto& [id, done] : copies_) taken.push_back(std::move(done));
  copies_.clear();
  return taken;
}

std::vector<Worker::LoadDone> EventLedger::TakeAllLoads() {
  std::vector<Worker::LoadDone> taken;
  for (auto& [id, loaded] : loads_) taken.push_back(std::move(loaded));
  loads_.clear();
  return taken;
}

void EventLedger::FailArenas(const absl::Status& cause) {
  for (auto& [arena, result] : arenas_) {
    if (!result.has_value()) result = cause;
  }
}

}  // namespace stride::broker
