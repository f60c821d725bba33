// An Execute call, by gRPC or by a local connection.
#pragma once

#include <memory>

#include "client/cpp/src/channels.h"
#include "client/cpp/src/local_connection.h"
#include "stride/error.h"
#include "stride/v1/compute_service.pb.h"

namespace stride::internal {

// One thread may write while another reads; any may cancel.
class CommandConnection {
 public:
  virtual ~CommandConnection() = default;

  // False: the call has ended or is about to, and Read returns the end.
  virtual bool Write(const v1::ExecuteRequest& request) = 0;
  // False: the call has ended. `watch`: answers are expected soon (see Watch).
  virtual bool Read(v1::ExecuteResponse* response, bool watch) = 0;
  // Why it has ended, after Read returned false. CANCELLED after Cancel; UNAVAILABLE when the
  // daemon gave no reason.
  virtual Error Finish() = 0;
  virtual void Cancel() = 0;
};

std::unique_ptr<CommandConnection> ExecuteByGrpc(Channels& channels);
std::unique_ptr<CommandConnection> ExecuteLocally(std::unique_ptr<LocalConnection> connection);

}  // namespace stride::internal
