#include "server/api/array_service.h"

#include <string_view>
#include <utility>
#include <vector>

#include <grpcpp/support/slice.h>

#include "server/api/serve.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

// For an upload with more messages or larger ones, the initial metadata is sent before the answer.
// The watch of the connection infers from it that the daemon takes the messages (stream_bytes.h).
// Small uploads save the packet.
constexpr int kFewMessages = 3;
constexpr size_t kSmallMessageBytes = 64 << 10;

absl::StatusOr<std::vector<grpc::Slice>> SlicesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (grpc::Status status = buffer.Dump(&slices); !status.ok()) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "",
                        "a message that cannot be decompressed");
  }
  return slices;
}

class ReaderWire final : public PutWire {
 public:
  explicit ReaderWire(RawStream* stream) : stream_(*stream) {}

  bool Read(std::vector<std::string_view>* message, absl::Status* status) override {
    slices_.clear();  // release the message before waiting for the next
    grpc::ByteBuffer buffer;
    if (!stream_.Read(&buffer)) return false;
    if (!told_ && (++num_messages_ > kFewMessages || buffer.Length() > kSmallMessageBytes)) {
      told_ = true;
      stream_.SendInitialMetadata();
    }
    auto slices = SlicesOf(buffer);
    if (!slices.ok()) {
      *status = slices.status();
      return false;
    }
    slices_ = *std::move(slices);
    message->clear();
    for (const grpc::Slice& slice : slices_)
      message->emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
    return true;
  }

 private:
  RawStream& stream_;
  int num_messages_ = 0;
  bool told_ = false;  // that messages are taken
  std::vector<grpc::Slice> slices_;
};

class StreamWire final : public FetchWire {
 public:
  explicit StreamWire(ResponseWriter* writer) : writer_(*writer) {}
  bool Write(const grpc::ByteBuffer& message) override { return writer_.WriteBytes(message); }

 private:
  ResponseWriter& writer_;
};

}  // namespace

void ArrayServiceAdapter::AddMethods() {
  Stream("ArrayService/PutArray", [this](Call& call, RawStream* stream) {
    ReaderWire wire(stream);
    v1::PutArrayResponse response;
    absl::Status status = Into(transfer_.Put(call, wire), response.mutable_array());
    return status.ok() ? ResponseWriter(stream).WriteLast(call, response) : status;
  });
  Responses<v1::FetchArrayRequest>("ArrayService/FetchArray", kControlRequest,
                                   [this](Call& call, const auto& request, ResponseWriter* writer) {
                                     StreamWire wire(writer);
                                     return transfer_.Fetch(call, request, wire);
                                   });
  Unary<v1::CreateArrayRequest, v1::CreateArrayResponse>(
      "ArrayService/CreateArray", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(arrays_->Create(call.tenant(), request), response->mutable_array());
      });
  Unary<v1::GetArrayRequest, v1::GetArrayResponse>(
      "ArrayService/GetArray", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(arrays_->Get(call.tenant(), request.name()), response->mutable_array());
      });
  Unary<v1::ListArraysRequest, v1::ListArraysResponse>(
      "ArrayService/ListArrays", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(arrays_->List(call.tenant(), request), response);
      });
  Unary<v1::DeleteArrayRequest, v1::DeleteArrayResponse>(
      "ArrayService/DeleteArray", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return arrays_->Delete(call.tenant(), request.name());
      });
}

}  // namespace stride::api
