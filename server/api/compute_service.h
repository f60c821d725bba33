#pragma once

#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_stream.h>

#include "server/api/call.h"
#include "server/api/raw_methods.h"
#include "server/scheduler/engine.h"
#include "stride/v1/compute_service.grpc.pb.h"

namespace stride::api {

// The adapter of ComputeService: Execute, each call of which holds its thread and has a second one
// that writes (execute_stream.h). Run is RunServer's.
class ComputeServiceAdapter final : public RawService<v1::ComputeService::Service> {
 public:
  using RunStream = grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

  // Both must outlive the server.
  ComputeServiceAdapter(CallEnvironment* environment, scheduler::Engine* engine);

  // Waits for the next call of Run, which comes when its metadata does: `tag` on `queue`.
  void RequestRun(grpc::ServerContext* context, RunStream* stream,
                  grpc::ServerCompletionQueue* queue, void* tag) {
    RequestAsyncBidiStreaming(run_index_, context, stream, queue, queue, tag);
  }

 private:
  scheduler::Engine* const engine_;
  const int run_index_;
};

}  // namespace stride::api
