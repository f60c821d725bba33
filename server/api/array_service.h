#pragma once

#include <grpcpp/support/byte_buffer.h>

#include "server/api/call.h"
#include "server/scheduler/engine.h"
#include "server/transfer/bulk_gate.h"
#include "stride/v1/array_service.grpc.pb.h"

namespace stride::api {

// The adapter of ArrayService. PutArray and FetchArray see the bytes of their messages rather than
// protobuf objects, so that payload goes from gRPC's buffers to staging, and from staging to the
// socket, without a copy between (server/transfer).
class ArrayServiceAdapter final : public v1::ArrayService::Service {
 public:
  // All must outlive the server.
  ArrayServiceAdapter(CallEnvironment* environment, scheduler::Engine* engine,
                      transfer::BulkGate* gate);

  grpc::Status CreateArray(grpc::ServerContext* context, const v1::CreateArrayRequest* request,
                           v1::CreateArrayResponse* response) override;
  grpc::Status GetArray(grpc::ServerContext* context, const v1::GetArrayRequest* request,
                        v1::GetArrayResponse* response) override;
  grpc::Status ListArrays(grpc::ServerContext* context, const v1::ListArraysRequest* request,
                          v1::ListArraysResponse* response) override;
  grpc::Status DeleteArray(grpc::ServerContext* context, const v1::DeleteArrayRequest* request,
                           v1::DeleteArrayResponse* response) override;

 private:
  using PutReader = grpc::ServerReader<grpc::ByteBuffer>;
  using FetchStream = grpc::ServerReaderWriter<grpc::ByteBuffer, v1::FetchArrayRequest>;

  absl::StatusOr<v1::Array> Put(Call& call, PutReader* reader);
  // The next bytes of an upload, from its region.
  absl::Status PutShared(Call& call, const v1::RegionRange& chunk, scheduler::Upload& upload);
  absl::Status Fetch(Call& call, const v1::FetchArrayRequest& request, FetchStream* stream);
  absl::Status SendData(Call& call, scheduler::Download& download, int64_t chunk_bytes,
                        FetchStream* stream);
  // Into the call's region, of which the client is told.
  absl::Status SendShared(Call& call, scheduler::Download& download, int64_t chunk_bytes,
                          FetchStream* stream);
  void CountDownload(Call& call, int64_t bytes);
  absl::StatusOr<std::unique_ptr<scheduler::Download>> WaitForArray(
      Call& call, const v1::FetchArrayRequest& request);

  CallEnvironment& environment_;
  scheduler::Engine* const engine_;
  transfer::BulkGate* const gate_;
};

}  // namespace stride::api
