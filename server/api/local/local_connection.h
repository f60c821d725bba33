#pragma once

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/api/array_transfer.h"
#include "server/api/call.h"
#include "server/api/compute_services.h"
#include "server/api/local/frame_socket.h"
#include "server/api/local/pins.h"
#include "server/base/unique_fd.h"
#include "server/engine/service/region_service.h"

namespace stride::api {

class FrameReader;

// A connection that carries calls one after another without HTTP/2. A client on this host that
// calls small operations one by one then waits for little more than the work. Its thread reads a
// request, submits it, waits for its end and writes the reply. An Execute call has a second thread
// that writes (execute_stream.h).
class LocalConnection {
 public:
  // All must outlive the connections.
  struct Services {
    ComputeServices compute;
    engine::RegionService* regions;
    ArrayTransfer* transfer;
    Pins* pins;
  };

  // `socket` is connected, and its OPEN frame was read. `environment` must outlive this object.
  // `tenant` is charged for room.
  LocalConnection(CallEnvironment* environment, const Services& services, const TenantId& tenant,
                  Authenticator::Again authenticate, std::string peer, UniqueFd socket);

  // Serves until the client closes the connection, sends an invalid frame or begins no call for a
  // minute, or the daemon ends it. Runs on its own thread.
  void Serve();

  // Any thread: ends the connection once its call has ended, or at once without a call.
  void EndSoon();
  // Any thread: ends now; the call is cancelled.
  void End() { socket_.Shutdown(); }

 private:
  // False: no more calls.
  bool ServeOne(const Frame& frame);
  // Refuses a call whose first frame found no room. False: no more calls.
  bool RefuseCall(const absl::Status& status);
  bool ServeRun(const Frame& frame);
  bool ServeExecute(const Frame& frame);
  bool ServePut(const Frame& frame);
  bool ServeFetch(const Frame& frame);
  bool ServeCreateRegion(const Frame& frame);
  bool ServeMapArray(const Frame& frame);
  // Serves a call whose answer carries memory. `make(call, request, response)` returns the memory.
  template <typename Request, typename Response, typename Make>
  bool ServeMemory(const Frame& frame, const char* method, Make make);
  absl::Status Run(Call& call, const v1::RunRequest& request, v1::RunResponse* response);
  // Writes `shown`, the status of a call that has ended, and reads its remaining frames. False: the
  // last frame does not arrive.
  bool Finish(FrameReader& frames, const google::rpc::Status& shown);
  bool Refuse(const absl::Status& status);

  CallEnvironment& environment_;
  const Services services_;
  FrameSocket socket_;
  const LocalCaller caller_;
  std::atomic<bool> busy_{false};  // carries a call
  std::atomic<bool> ending_{false};
};

}  // namespace stride::api
