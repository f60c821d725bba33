#include "server/api/compute_service.h"

#include "server/api/execute_stream.h"
#include "server/api/serve.h"

namespace stride::api {
namespace {

using Stream = grpc::ServerReaderWriter<v1::ExecuteResponse, v1::ExecuteRequest>;

class StreamWire final : public CommandWire {
 public:
  explicit StreamWire(Stream* stream) : stream_(*stream) {}
  bool Read(v1::ExecuteRequest* request) override { return stream_.Read(request); }
  bool Write(const v1::ExecuteResponse& response) override { return stream_.Write(response); }

 private:
  Stream& stream_;
};

}  // namespace

grpc::Status ComputeServiceAdapter::Execute(grpc::ServerContext* context, Stream* stream) {
  StreamWire wire(stream);
  return Serve(environment_, context, "ComputeService/Execute",
               [&](Call& call) { return ExecuteStream(&call, engine_, &wire).Run(); });
}

}  // namespace stride::api
