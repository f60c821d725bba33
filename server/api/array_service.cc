#include "server/api/array_service.h"

#include <string_view>
#include <utility>
#include <vector>

#include <grpcpp/support/method_handler.h>
#include <grpcpp/support/slice.h>

#include "server/api/serve.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

using FetchStream = grpc::ServerReaderWriter<grpc::ByteBuffer, v1::FetchArrayRequest>;

int MethodIndex(const char* name) {
  const auto* service =
      v1::PutArrayRequest::descriptor()->file()->FindServiceByName("ArrayService");
  return service->FindMethodByName(name)->index();
}

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
  explicit ReaderWire(grpc::ServerReader<grpc::ByteBuffer>* reader) : reader_(*reader) {}

  bool Read(std::vector<std::string_view>* message, absl::Status* status) override {
    slices_.clear();  // not to be held while the next is waited for
    grpc::ByteBuffer buffer;
    if (!reader_.Read(&buffer)) return false;
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
  grpc::ServerReader<grpc::ByteBuffer>& reader_;
  std::vector<grpc::Slice> slices_;
};

class StreamWire final : public FetchWire {
 public:
  explicit StreamWire(FetchStream* stream) : stream_(*stream) {}
  bool Write(const grpc::ByteBuffer& message) override { return stream_.Write(message); }

 private:
  FetchStream& stream_;
};

}  // namespace

ArrayServiceAdapter::ArrayServiceAdapter(CallEnvironment* environment, scheduler::Engine* engine,
                                         ArrayTransfer* transfer)
    : environment_(*environment), engine_(engine), transfer_(*transfer) {
  using Put = grpc::internal::ClientStreamingHandler<ArrayServiceAdapter, grpc::ByteBuffer,
                                                     v1::PutArrayResponse>;
  MarkMethodStreamed(
      MethodIndex("PutArray"),
      new Put(
          [](ArrayServiceAdapter* self, grpc::ServerContext* context,
             grpc::ServerReader<grpc::ByteBuffer>* reader, v1::PutArrayResponse* response) {
            ReaderWire wire(reader);
            return Serve(self->environment_, context, "ArrayService/PutArray", [&](Call& call) {
              return Into(self->transfer_.Put(call, wire), response->mutable_array());
            });
          },
          this));
  // To the server a streamed method has its request as a first message; it is read here.
  using Fetch = grpc::internal::BidiStreamingHandler<ArrayServiceAdapter, v1::FetchArrayRequest,
                                                     grpc::ByteBuffer>;
  MarkMethodStreamed(
      MethodIndex("FetchArray"),
      new Fetch(
          [](ArrayServiceAdapter* self, grpc::ServerContext* context, FetchStream* stream) {
            return Serve(self->environment_, context, "ArrayService/FetchArray",
                         [&](Call& call) -> absl::Status {
                           v1::FetchArrayRequest request;
                           StreamWire wire(stream);
                           if (stream->Read(&request))
                             return self->transfer_.Fetch(call, request, wire);
                           if (call.cancelled()) return call.EndOfWait();
                           return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "",
                                               "malformed FetchArrayRequest");
                         });
          },
          this));
}

grpc::Status ArrayServiceAdapter::CreateArray(grpc::ServerContext* context,
                                              const v1::CreateArrayRequest* request,
                                              v1::CreateArrayResponse* response) {
  return Serve(environment_, context, "ArrayService/CreateArray", [&](Call& call) {
    return Into(engine_->CreateArray(call.tenant(), *request), response->mutable_array());
  });
}

grpc::Status ArrayServiceAdapter::GetArray(grpc::ServerContext* context,
                                           const v1::GetArrayRequest* request,
                                           v1::GetArrayResponse* response) {
  return Serve(environment_, context, "ArrayService/GetArray", [&](Call& call) {
    return Into(engine_->GetArray(call.tenant(), request->name()), response->mutable_array());
  });
}

grpc::Status ArrayServiceAdapter::ListArrays(grpc::ServerContext* context,
                                             const v1::ListArraysRequest* request,
                                             v1::ListArraysResponse* response) {
  return Serve(environment_, context, "ArrayService/ListArrays", [&](Call& call) {
    return Into(engine_->ListArrays(call.tenant(), *request), response);
  });
}

grpc::Status ArrayServiceAdapter::DeleteArray(grpc::ServerContext* context,
                                              const v1::DeleteArrayRequest* request,
                                              v1::DeleteArrayResponse* response) {
  return Serve(environment_, context, "ArrayService/DeleteArray",
               [&](Call& call) { return engine_->DeleteArray(call.tenant(), request->name()); });
}

}  // namespace stride::api
