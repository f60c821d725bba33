// The one ordered stream of commands that a client's operations travel down.
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

// Thread-safe. Opens the stream with its first command and again after it broke; commands without
// an answer then fail, since whether the daemon took them cannot be known.
//
// The thread that submits also writes: whoever finds nobody writing sends all that is queued, so
// that a lone command waits for no other thread. Commands that come close upon another and whose
// answer nobody awaits go to a writer thread instead: a message costs as much as many commands, and
// what piles up while one is being written shares the next. So does what piles up while a few
// messages are unanswered and nobody waits: messages grow until the daemon keeps up. A thread of
// its own reads answers. It travels by a local connection where there is one to be had, else by
// gRPC.
class CommandStream {
 public:
  // All must outlive it.
  CommandStream(Channels& channels, LocalCalls& local, Session& session)
      : channels_(channels), local_(local), session_(session) {}
  ~CommandStream();

  // Numbers and sends the command. Blocks only while very many are unanswered or the connection is
  // full.
  std::shared_ptr<PendingCommand> Submit(v1::Command command);
  // Forgets a handle: with the next command, or now when the handles waiting for that are many or
  // `bytes` of them are much.
  void Release(uint64_t handle, int64_t bytes);
  // Ends the stream; unanswered commands fail with CANCELLED. The last call.
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
  // What there is to send goes now, or else when answers have come.
  bool MayWrite() const;
  WaitingMap::node_type TakeOut(WaitingMap::iterator command);

  void WriteQueued(std::unique_lock<std::mutex>& lock);
  // Lets the writer thread do it. Caller holds the lock and there is no other writer.
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
  const Cancellation closing_;  // of what connects
  std::mutex mutex_;
  std::condition_variable room_;
  std::deque<v1::Command> queue_;
  WaitingMap waiting_;
  int num_awaited_ = 0;  // of these
  // The last command of each message that was sent and is not answered, in order.
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
