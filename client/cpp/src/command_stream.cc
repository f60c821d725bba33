#include "client/cpp/src/command_stream.h"

#include <thread>
#include <utility>

#include "client/cpp/src/command_connection.h"
#include "client/cpp/src/status.h"

namespace stride::internal {
namespace {

// The contract's limit.
constexpr int kMaxCommandsPerMessage = 1000;
// Inline operands may be large; messages stay below the 4 MiB of the contract.
constexpr size_t kMaxMessageBytes = 2 << 20;
// Bounds the cost of unread answers on both sides.
constexpr size_t kMaxWaiting = 16384;
// Blocked submitters continue once this few commands are unanswered. If they were released one by
// one, each command would be a message.
constexpr size_t kFewWaiting = kMaxWaiting / 2;
constexpr int kReleasesPerCommand = 64;
constexpr int64_t kReleaseNowBytes = 16 << 20;
// This many unanswered messages keep the daemon busy.
constexpr size_t kMaxMessages = 4;
// Commands closer than this are a burst. A few times what it takes to wake a thread.
constexpr auto kBurst = std::chrono::microseconds(100);

constexpr auto kConnectTimeout = std::chrono::seconds(10);

// Whether the caller is about to wait for its answer.
bool Awaited(const v1::Command& command) { return !command.has_operation() || command.wait(); }

}  // namespace

struct CommandStream::Live {
  std::unique_ptr<CommandConnection> connection;
  std::string session;
  std::thread reader;
  bool broken = false;  // guarded by CommandStream::mutex_
};

CommandStream::~CommandStream() { Close(); }

std::shared_ptr<PendingCommand> CommandStream::Submit(v1::Command command) {
  auto pending = std::make_shared<PendingCommand>();
  std::unique_lock lock(mutex_);
  if (waiting_.size() >= kMaxWaiting)
    room_.wait(lock, [this] { return closed_ || waiting_.size() <= kFewWaiting; });
  if (closed_) {
    pending->Fail(LocalError(Code::kCancelled, "The client is closed"));
    return pending;
  }
  command.set_id(next_id_++);
  const bool awaited = Awaited(command);
  waiting_[command.id()] = {pending, awaited};
  num_awaited_ += awaited;
  const auto now = std::chrono::steady_clock::now();
  const bool burst = !awaited && now - std::exchange(last_submit_, now) < kBurst;
  queue_.push_back(std::move(command));
  if (writing_ || !MayWrite()) return pending;
  if (burst) {
    HandToWriter();
  } else {
    WriteQueued(lock);
  }
  return pending;
}

void CommandStream::Release(uint64_t handle, int64_t bytes) {
  std::unique_lock lock(mutex_);
  if (closed_) return;
  releases_.add_handles(handle);
  released_bytes_ += bytes;
  if (!HasMuchToRelease() || writing_ || !MayWrite()) return;
  if (std::chrono::steady_clock::now() - last_submit_ < kBurst) {
    HandToWriter();
  } else {
    WriteQueued(lock);
  }
}

bool CommandStream::HasMuchToRelease() const {
  return releases_.handles_size() >= kReleasesPerCommand || released_bytes_ >= kReleaseNowBytes;
}

// Answers come in order: after a command that waits for work, missing answers do not mean a busy
// daemon.
bool CommandStream::MayWrite() const { return messages_.size() < kMaxMessages || num_awaited_ > 0; }

CommandStream::WaitingMap::node_type CommandStream::TakeOut(WaitingMap::iterator command) {
  num_awaited_ -= command->second.awaited;
  return waiting_.extract(command);
}

void CommandStream::HandToWriter() {
  writing_ = true;
  handed_ = true;
  if (!writer_.joinable()) writer_ = std::thread([this] { WriteWhenHanded(); });
  handed_changed_.notify_one();
}

void CommandStream::WriteWhenHanded() {
  std::unique_lock lock(mutex_);
  for (;;) {
    handed_changed_.wait(lock, [this] { return handed_ || closed_; });
    if (std::exchange(handed_, false)) WriteQueued(lock);
    if (closed_) return;
  }
}

// Caller holds the lock and there is no other writer.
void CommandStream::WriteQueued(std::unique_lock<std::mutex>& lock) {
  writing_ = true;
  while (!closed_ && (!queue_.empty() || releases_.handles_size() > 0) && MayWrite()) {
    lock.unlock();
    auto live = Connected();
    lock.lock();
    auto batch = TakeBatch();
    if (!live || (*live)->broken) {
      const Error error = live
                              ? LocalError(Code::kUnavailable, "The connection to the daemon broke")
                              : live.error();
      for (const auto& command : batch) {
        if (auto it = waiting_.find(command.id()); it != waiting_.end())
          TakeOut(it).mapped().command->Fail(error);
      }
      room_.notify_all();
      continue;
    }
    for (const auto& command : batch) {
      if (auto it = waiting_.find(command.id()); it != waiting_.end())
        it->second.stream = live->get();
    }
    messages_.push_back(batch.back().id());
    lock.unlock();
    v1::ExecuteRequest request;
    request.set_session((*live)->session);
    for (auto& command : batch) *request.add_commands() = std::move(command);
    // After a failed write the reader meets the end of the stream and reports the cause.
    (void)(*live)->connection->Write(request);
    lock.lock();
  }
  writing_ = false;
  room_.notify_all();
}

std::vector<v1::Command> CommandStream::TakeBatch() {
  std::vector<v1::Command> batch;
  size_t bytes = 0;
  while (!queue_.empty() && batch.size() < kMaxCommandsPerMessage - 1 && bytes < kMaxMessageBytes) {
    const size_t next = queue_.front().ByteSizeLong();
    if (!batch.empty() && bytes + next > kMaxMessageBytes) break;
    bytes += next;
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  // Releases follow the commands: a released handle may be an operand of one of them. While
  // commands are queued, the release waits for the last.
  if (queue_.empty() && releases_.handles_size() > 0) {
    v1::Command release;
    release.set_id(next_id_++);
    *release.mutable_release() = std::move(releases_);
    releases_.Clear();
    released_bytes_ = 0;
    batch.push_back(std::move(release));
  }
  return batch;
}

Result<std::shared_ptr<CommandStream::Live>> CommandStream::Connected() {
  std::shared_ptr<Live> old;
  {
    std::lock_guard lock(mutex_);
    if (live_ && !live_->broken) return live_;
    old.swap(live_);
  }
  if (old && old->reader.joinable()) old->reader.join();
  auto session = session_.Name();
  if (!session) return session.error();
  auto live = std::make_shared<Live>();
  live->session = *session;
  auto local = local_.Open({.timeout = kConnectTimeout, .cancellation = closing_});
  live->connection = local ? ExecuteLocally(std::move(local)) : ExecuteByGrpc(channels_);
  live->reader = std::thread([this, live] { ReadAnswers(live); });
  std::lock_guard lock(mutex_);
  live_ = live;
  return live;
}

void CommandStream::ReadAnswers(std::shared_ptr<Live> live) {
  v1::ExecuteResponse response;
  bool watch = true;
  while (live->connection->Read(&response, watch)) {
    std::vector<std::pair<std::shared_ptr<PendingCommand>, v1::CommandResult*>> answered;
    bool few = false;
    {
      // A caller that awaited an answer often awaits the next one soon.
      watch = false;
      std::lock_guard lock(mutex_);
      for (auto& result : *response.mutable_results()) {
        while (!messages_.empty() && messages_.front() <= result.id()) messages_.pop_front();
        auto it = waiting_.find(result.id());
        if (it == waiting_.end()) continue;
        watch |= it->second.awaited;
        answered.emplace_back(std::move(TakeOut(it).mapped().command), &result);
      }
      watch |= num_awaited_ > 0;
      few = waiting_.size() <= kFewWaiting;
      if (!writing_ && !closed_ && (!queue_.empty() || HasMuchToRelease()) && MayWrite())
        HandToWriter();
    }
    if (few) room_.notify_all();
    for (auto& [command, result] : answered) command->Finish(std::move(*result));
  }
  const Error error = live->connection->Finish();
  if (error.reason == "SESSION_NOT_FOUND") session_.Forget(live->session);
  {
    // Set before its commands fail, so that the next writer does not use this stream.
    std::lock_guard lock(mutex_);
    live->broken = true;
    messages_.clear();
    if (!writing_ && !closed_ && !queue_.empty()) HandToWriter();
  }
  FailWaiting(live.get(), error);
}

void CommandStream::FailWaiting(const Live* stream, const Error& error) {
  std::vector<std::shared_ptr<PendingCommand>> failed;
  {
    std::lock_guard lock(mutex_);
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      if (stream && it->second.stream != stream) {
        ++it;
        continue;
      }
      failed.push_back(std::move(TakeOut(it++).mapped().command));
    }
  }
  room_.notify_all();
  for (auto& command : failed) command->Fail(error);
}

void CommandStream::Close() {
  closing_.Cancel();
  std::shared_ptr<Live> live;
  {
    std::unique_lock lock(mutex_);
    closed_ = true;
    if (live_) live_->connection->Cancel();
    room_.notify_all();
    handed_changed_.notify_one();
    room_.wait(lock, [this] { return !writing_; });
    live.swap(live_);
    // A writer that was connecting when `closed_` was set may have opened this stream after the
    // cancel above.
    if (live) live->connection->Cancel();
  }
  if (writer_.joinable()) writer_.join();
  if (live && live->reader.joinable()) live->reader.join();
  FailWaiting(nullptr, LocalError(Code::kCancelled, "The client is closed"));
}

}  // namespace stride::internal
