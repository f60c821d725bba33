#include "server/worker/runtime/event_sender.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "server/base/environment.h"
#include "server/wire/status.h"

namespace stride::worker {
namespace {

// Well under wire::kMaxPacketBytes: one more result of maximal length (wire::kMaxStatusText) still
// fits.
constexpr size_t kPacketBudget = 64 << 10;
constexpr int kMaxCopiesInPacket = 4096;

}  // namespace

void EventSender::TaskDone(uint64_t sequence, const absl::Status& status, double run_seconds,
                           bool more) {
  wire::TaskResult result;
  result.set_sequence(sequence);
  if (!status.ok()) *result.mutable_status() = wire::FromStatus(status);
  result.set_run_seconds(run_seconds);
  absl::MutexLock lock(&mutex_);
  tasks_.push_back(std::move(result));
  if (!more) Flush();
}

void EventSender::TasksCancelled(uint64_t sequence, bool taken) {
  wire::TasksCancelled answer;
  answer.set_sequence(sequence);
  answer.set_taken(taken);
  absl::MutexLock lock(&mutex_);
  cancelled_.push_back(std::move(answer));
  Flush();
}

void EventSender::CopyDone(uint64_t id, const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  bool join = status.ok() && !copies_.empty() && copies_.back().status().code() == 0 &&
              copies_.back().ids_size() < kMaxCopiesInPacket;
  if (!join) {
    copies_.emplace_back();
    if (!status.ok()) *copies_.back().mutable_status() = wire::FromStatus(status);
  }
  copies_.back().add_ids(id);
  Flush();
}

void EventSender::Printed(uint64_t sequence, const PrintedText& printed) {
  absl::string_view rest = printed.text;
  do {
    wire::Event event;
    event.mutable_printed()->set_sequence(sequence);
    absl::string_view piece = rest.substr(0, kMaxPrintedPiece);
    const size_t line_end = piece.rfind('\n');
    // Send whole lines, so that the daemon can count the ones that it drops.
    if (piece.size() < rest.size() && line_end != absl::string_view::npos)
      piece = piece.substr(0, line_end + 1);
    event.mutable_printed()->set_text(piece.data(), piece.size());
    rest.remove_prefix(piece.size());
    if (rest.empty()) event.mutable_printed()->set_dropped_lines(printed.dropped_lines);
    Send(event);
  } while (!rest.empty());
}

void EventSender::Fatal(uint64_t sequence, const absl::Status& status, bool context_lost) {
  wire::Event event;
  event.mutable_fatal()->set_context_lost(context_lost);
  event.mutable_fatal()->set_sequence(sequence);
  *event.mutable_fatal()->mutable_status() = wire::FromStatus(status);
  {
    // Earlier completions must be reported first, but a blocked sender must not hold up this
    // report.
    absl::MutexLock lock(&mutex_);
    Await(mutex_,
          absl::Condition(
              +[](bool* flushing) { return !*flushing; }, &flushing_),
          Now() + absl::Milliseconds(200));
    Flush();
  }
  (void)channel_->Send(event);
  std::fprintf(stderr, "stride worker: %s\n", std::string(status.message()).c_str());
  _exit(1);
}

void EventSender::Send(const wire::Event& event, absl::Span<const int> descriptors) {
  absl::Status status = channel_->Send(event, descriptors);
  if (status.ok()) return;
  if (absl::IsUnavailable(status)) _exit(0);
  Fatal(0, status, /*context_lost=*/false);
}

void EventSender::Flush() {
  if (flushing_) return;  // the sending thread also sends these
  flushing_ = true;
  wire::Event event;
  while (TakeCancelled(&event) || TakeTasks(&event) || TakeCopies(&event)) {
    mutex_.Unlock();
    absl::Status status = channel_->Send(event);
    if (!status.ok()) _exit(absl::IsUnavailable(status) ? 0 : 1);
    mutex_.Lock();
  }
  flushing_ = false;
}

bool EventSender::TakeCancelled(wire::Event* event) {
  if (cancelled_.empty()) return false;
  *event->mutable_tasks_cancelled() = std::move(cancelled_.front());
  cancelled_.pop_front();
  return true;
}

bool EventSender::TakeTasks(wire::Event* event) {
  if (tasks_.empty()) return false;
  auto* done = event->mutable_tasks_done();
  done->Clear();
  size_t bytes = 0, taken = 0;
  while (taken < tasks_.size() && bytes < kPacketBudget) {
    bytes += tasks_[taken].ByteSizeLong() + 8;
    *done->add_results() = std::move(tasks_[taken++]);
  }
  tasks_.erase(tasks_.begin(), tasks_.begin() + taken);
  return true;
}

bool EventSender::TakeCopies(wire::Event* event) {
  if (copies_.empty()) return false;
  *event->mutable_copies_done() = std::move(copies_.front());
  copies_.erase(copies_.begin());
  return true;
}

}  // namespace stride::worker
