#pragma once

#include "stride/v1/compute_service.pb.h"

namespace stride::api {

// Transport of an Execute call's messages. One thread reads, another may write at the same time.
class CommandWire {
 public:
  virtual ~CommandWire() = default;
  // Blocks. False: there are no more messages, or the client is gone.
  virtual bool Read(v1::ExecuteRequest* request) = 0;
  // Blocks while the client does not read. False: the client is gone.
  virtual bool Write(const v1::ExecuteResponse& response) = 0;
};

}  // namespace stride::api
