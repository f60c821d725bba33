#pragma once

#include "server/api/array_transfer.h"
#include "server/api/call.h"
#include "server/api/raw_methods.h"
#include "server/engine/service/array_service.h"
#include "stride/v1/array_service.grpc.pb.h"

namespace stride::api {

// The adapter of ArrayService. PutArray and FetchArray see the bytes of their messages
// (array_transfer.h).
class ArrayServiceAdapter final : public RawService<v1::ArrayService::Service> {
 public:
  // All must outlive the server.
  ArrayServiceAdapter(CallEnvironment* environment, engine::ArrayService* arrays,
                      ArrayTransfer* transfer)
      : RawService(environment), arrays_(arrays), transfer_(*transfer) {
    AddMethods();
  }

 private:
  void AddMethods();
  engine::ArrayService* const arrays_;
  ArrayTransfer& transfer_;
};

}  // namespace stride::api
