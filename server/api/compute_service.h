#pragma once

#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_stream.h>

#include "server/api/call.h"
#include "server/api/compute_services.h"
#include "server/api/raw_methods.h"
#include "stride/v1/compute_service.grpc.pb.h"

namespace stride::api {

// The adapter of ComputeService: Execute, each call of which holds its thread and has a second one
// that writes (execute_stream.h). Run is RunServer's.
class ComputeServiceAdapter final : public RawService<v1::ComputeService::Service> {
 public:
  using RunStream = grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

  // All must outlive the server.
  ComputeServiceAdapter(CallEnvironment* environment, const ComputeServices& services);

  // Waits for the next call of Run, which comes when its metadata does: `tag` on `queue`.
  void RequestRun(grpc::ServerContext* context, RunStream* stream,
                  grpc::ServerCompletionQueue* queue, void* tag) {
    RequestAsyncBidiStreaming(run_index_, context, stream, queue, queue, tag);
  }

 private:
  const ComputeServices services_;
  const int run_index_;
};

}  // namespace stride::api
