#pragma once

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/api/array_transfer.h"
#include "server/api/call.h"
#include "server/api/compute_services.h"
#include "server/api/frame_socket.h"
#include "server/base/unique_fd.h"

namespace stride::api {

class FrameReader;

// One connection that carries calls, one after the other, without HTTP/2: a client on this host
// that calls one small operation after the other waits for the work, and for little else. Its
// thread reads a request, submits it, waits for its end and writes the reply; an Execute call has a
// second thread that writes (execute_stream.h).
class LocalConnection {
 public:
  // `socket` is connected. All but it must outlive this. `tenant`: who pays for room.
  LocalConnection(CallEnvironment* environment, const ComputeServices& services,
                  ArrayTransfer* transfer, const TenantId& tenant,
                  Authenticator::Again authenticate, std::string peer, UniqueFd socket);

  // Until the client closes it, sends what is no frame, or begins no call for a minute, or the
  // daemon ends it. On a thread of its own.
  void Serve();

  // Any thread: ends when the call that it carries has ended, at once where there is none.
  void EndSoon();
  // Any thread: ends now; the call is cancelled.
  void End() { socket_.Shutdown(); }

 private:
  // False: no more calls.
  bool ServeOne(const Frame& frame);
  // A call whose first frame has found no room. False: no more calls.
  bool RefuseCall(const absl::Status& status);
  bool ServeRun(const Frame& frame);
  bool ServeExecute(const Frame& frame);
  bool ServePut(const Frame& frame);
  bool ServeFetch(const Frame& frame);
  absl::Status Run(Call& call, const v1::RunRequest& request, v1::RunResponse* response);
  // What follows of a call of several frames that has ended with `shown`: up to its last one.
  // False: there is none.
  bool Finish(FrameReader& frames, const google::rpc::Status& shown);
  bool Refuse(const absl::Status& status);

  CallEnvironment& environment_;
  const ComputeServices services_;
  ArrayTransfer& transfer_;
  FrameSocket socket_;
  const LocalCaller caller_;
  std::atomic<bool> busy_{false};  // carries a call
  std::atomic<bool> ending_{false};
};

}  // namespace stride::api
