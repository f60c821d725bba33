#include "server/api/compute_service.h"

#include "server/api/execute_stream.h"

namespace stride::api {
namespace {

class StreamWire final : public CommandWire {
 public:
  StreamWire(RawStream* stream, ByteBudget::Charge charge)
      : stream_(*stream), charge_(std::move(charge)) {}

  bool Read(v1::ExecuteRequest* request) override {
    // Releases the charge of the last message.
    charge_.Set(0).IgnoreError();
    grpc::ByteBuffer bytes;
    if (!stream_.Read(&bytes)) return false;
    status_ =
        ParseRequest(bytes, ShapeOf<v1::ExecuteRequest>(), kContentRequest, &charge_, request);
    return status_.ok();
  }
  bool Write(const v1::ExecuteResponse& response) override {
    return ResponseWriter(&stream_).Write(response);
  }

  // The error of the last request, if it ended the stream.
  const absl::Status& status() const { return status_; }

 private:
  RawStream& stream_;
  ByteBudget::Charge charge_;
  absl::Status status_;
};

}  // namespace

ComputeServiceAdapter::ComputeServiceAdapter(CallEnvironment* environment,
                                             const ComputeServices& services)
    : RawService(environment), services_(services), run_index_(Asynchronous("ComputeService/Run")) {
  Stream("ComputeService/Execute", [this](Call& call, RawStream* stream) {
    // Shows the watch of the connection that the daemon reads the messages (stream_bytes.h).
    stream->SendInitialMetadata();
    StreamWire wire(stream, ByteBudget::Charge(environment_.bytes, call.tenant()));
    absl::Status status = ExecuteStream(&call, services_, &wire).Run();
    return wire.status().ok() ? status : wire.status();
  });
}

}  // namespace stride::api
