#include "server/api/compute_service.h"

#include "server/api/execute_stream.h"
#include "server/api/serve.h"

namespace stride::api {

grpc::Status ComputeServiceAdapter::Execute(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::ExecuteResponse, v1::ExecuteRequest>* stream) {
  return Serve(environment_, context, "ComputeService/Execute",
               [&](Call& call) { return ExecuteStream(&call, engine_, stream).Run(); });
}

}  // namespace stride::api
