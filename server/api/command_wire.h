#pragma once

#include "stride/v1/compute_service.pb.h"

namespace stride::api {

// What the messages of an Execute call come and go by. One thread reads, another may write
// meanwhile.
class CommandWire {
 public:
  virtual ~CommandWire() = default;
  // Blocks. False: there are no more, or nobody is there any more.
  virtual bool Read(v1::ExecuteRequest* request) = 0;
  // Blocks while the client does not read. False: nobody is there any more.
  virtual bool Write(const v1::ExecuteResponse& response) = 0;
};

}  // namespace stride::api
