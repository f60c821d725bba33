#pragma once

#include "server/api/array_transfer.h"
#include "server/api/call.h"
#include "server/scheduler/engine.h"
#include "stride/v1/array_service.grpc.pb.h"

namespace stride::api {

// The adapter of ArrayService. PutArray and FetchArray see the bytes of their messages
// (array_transfer.h).
class ArrayServiceAdapter final : public v1::ArrayService::Service {
 public:
  // All must outlive the server.
  ArrayServiceAdapter(CallEnvironment* environment, scheduler::Engine* engine,
                      ArrayTransfer* transfer);

  grpc::Status CreateArray(grpc::ServerContext* context, const v1::CreateArrayRequest* request,
                           v1::CreateArrayResponse* response) override;
  grpc::Status GetArray(grpc::ServerContext* context, const v1::GetArrayRequest* request,
                        v1::GetArrayResponse* response) override;
  grpc::Status ListArrays(grpc::ServerContext* context, const v1::ListArraysRequest* request,
                          v1::ListArraysResponse* response) override;
  grpc::Status DeleteArray(grpc::ServerContext* context, const v1::DeleteArrayRequest* request,
                           v1::DeleteArrayResponse* response) override;

 private:
  CallEnvironment& environment_;
  scheduler::Engine* const engine_;
  ArrayTransfer& transfer_;
};

}  // namespace stride::api
