// State owned by a Client.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "client/cpp/src/bulk.h"
#include "client/cpp/src/channels.h"
#include "client/cpp/src/command_stream.h"
#include "client/cpp/src/local_calls.h"
#include "client/cpp/src/session.h"
#include "client/cpp/src/shared_memory.h"
#include "stride/client.h"

namespace stride::internal {

class Core : public std::enable_shared_from_this<Core> {
 public:
  // `target` is gRPC's name for `options.address`.
  Core(const ConnectOptions& options, const std::string& target, Credentials credentials)
      : channels(options.address, target, std::move(credentials), options.num_bulk_channels),
        session(channels, options.session_ttl),
        shared(channels, session, options.share_memory),
        local(options.local_calls && channels.by_unix_socket()
                  ? [this](const CallOptions& o) { return LocalConnection::Open(channels, o); }
                  : LocalCalls::Opener()),
        stream(channels, local, session),
        default_timeout(options.default_timeout) {}

  uint64_t NextHandle() { return next_handle_++; }
  BulkWays bulk() { return {channels, local, shared}; }

  // Runs `work` on a thread that Close joins. Close cancels `cancellation`.
  void InBackground(Cancellation cancellation, std::function<void()> work);
  // `command` may change existing arrays. Calls outside of the stream wait until the daemon has
  // accepted it.
  void NoteWrite(std::shared_ptr<PendingCommand> command);
  // Waits until noted writes are accepted. Their own errors are reported by their arrays, not here.
  void AwaitWrites(const CallOptions& options);
  // A command that is never sent, since its `error` is known already. TakeRefusal returns the error
  // once.
  std::shared_ptr<PendingCommand> Refuse(Error error);
  std::optional<Error> TakeRefusal();
  // Ends background work, the stream and the session. Only background calls may be in flight.
  void Close();

  Channels channels;
  Session session;
  SharedMemory shared;
  LocalCalls local;
  CommandStream stream;
  const std::chrono::nanoseconds default_timeout;

 private:
  struct Task {
    Cancellation cancellation;
    std::thread thread;
    std::atomic<bool> done = false;
  };

  std::atomic<uint64_t> next_handle_{1};
  std::mutex mutex_;
  std::shared_ptr<PendingCommand> last_write_;  // guarded by mutex_
  std::optional<Error> refusal_;                // the first one; guarded by mutex_
  std::vector<std::unique_ptr<Task>> tasks_;    // guarded by mutex_
};

}  // namespace stride::internal
