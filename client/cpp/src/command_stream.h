// The ordered stream of a client's operations.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "client/cpp/src/channels.h"
#include "client/cpp/src/local_calls.h"
#include "client/cpp/src/pending_command.h"
#include "client/cpp/src/session.h"

namespace stride::internal {

// Thread-safe. Opens the stream with its first command, and again after it broke. Commands without
// an answer then fail, since the daemon may or may not have accepted them.
//
// The submitting thread also writes: if no thread is writing, it sends all queued commands, so that
// a single command waits for no other thread. Commands in quick succession whose answer no caller
// awaits go to a writer thread instead, since a message costs as much as many commands. Commands
// that are queued during a write share the next message. So do those queued while a few messages
// are unanswered and no caller waits: messages grow until the daemon keeps up. Another thread reads
// answers. The stream uses a local connection if one is available, else gRPC.
class CommandStream {
 public:
  // The arguments must outlive it.
  CommandStream(Channels& channels, LocalCalls& local, Session& session)
      : channels_(channels), local_(local), session_(session) {}
  ~CommandStream();

  // Numbers and sends the command. Blocks only while too many commands are unanswered or the
  // connection is full.
  std::shared_ptr<PendingCommand> Submit(v1::Command command);
  // Releases a handle with the next command, or at once when many handles or many `bytes` are
  // pending.
  void Release(uint64_t handle, int64_t bytes);
  // Ends the stream; unanswered commands fail with CANCELLED. Must be the last call.
  void Close();

 private:
  struct Live;
  struct Waiting {
    std::shared_ptr<PendingCommand> command;
    bool awaited = false;
    const Live* stream = nullptr;  // null while queued
  };
  using WaitingMap = std::map<uint64_t, Waiting>;

  // Callers of these hold the lock.
  bool HasMuchToRelease() const;
  // Whether queued commands are sent now; otherwise after an answer.
  bool MayWrite() const;
  WaitingMap::node_type TakeOut(WaitingMap::iterator command);

  void WriteQueued(std::unique_lock<std::mutex>& lock);
  // Passes the role of the writer to the writer thread. Caller holds the lock and there is no other
  // writer.
  void HandToWriter();
  void WriteWhenHanded();
  std::vector<v1::Command> TakeBatch();
  // Caller is the writer and holds no lock.
  Result<std::shared_ptr<Live>> Connected();
  void ReadAnswers(std::shared_ptr<Live> live);
  void FailWaiting(const Live* stream, const Error& error);

  Channels& channels_;
  LocalCalls& local_;
  Session& session_;
  const Cancellation closing_;  // cancels connection attempts
  std::mutex mutex_;
  std::condition_variable room_;
  std::deque<v1::Command> queue_;
  WaitingMap waiting_;
  int num_awaited_ = 0;  // number of awaited commands in waiting_
  // The last command of each sent and unanswered message, in order.
  std::deque<uint64_t> messages_;
  v1::Release releases_;
  int64_t released_bytes_ = 0;
  uint64_t next_id_ = 1;
  bool writing_ = false;
  bool handed_ = false;  // the writer thread is the writer
  std::chrono::steady_clock::time_point last_submit_;
  std::condition_variable handed_changed_;
  std::thread writer_;
  bool closed_ = false;
  std::shared_ptr<Live> live_;
};

}  // namespace stride::internal
