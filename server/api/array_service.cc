#include "server/api/array_service.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <grpcpp/support/method_handler.h>
#include <grpcpp/support/slice.h>

#include "absl/strings/str_cat.h"
#include "server/api/serve.h"
#include "server/base/error.h"
#include "server/transfer/fetch_encoder.h"
#include "server/transfer/put_decoder.h"

namespace stride::api {
namespace {

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

std::vector<std::string_view> ViewsOf(const std::vector<grpc::Slice>& slices) {
  std::vector<std::string_view> views;
  views.reserve(slices.size());
  for (const grpc::Slice& slice : slices) {
    views.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return views;
}

// What one call may take of the region before it looks whether its client is still there, and
// whether its tenant is within its rate.
constexpr int64_t kSharedPieceBytes = int64_t{16} << 20;

absl::StatusOr<int64_t> ChunkBytes(const v1::FetchArrayRequest& request) {
  const bool shared = !request.region().empty();
  const int64_t most = shared ? transfer::kMaxSharedFetchBytes : transfer::kMaxFetchBytes;
  if (request.chunk_bytes() == 0)
    return shared ? transfer::kDefaultSharedFetchBytes : transfer::kDefaultFetchBytes;
  if (request.chunk_bytes() > 0 && request.chunk_bytes() <= most) return request.chunk_bytes();
  return InvalidField(
      v1::ERROR_REASON_SIZE_LIMIT, "chunk_bytes",
      absl::StrCat("must be from 1 to ", most, ", not ", request.chunk_bytes()),
      {{"limit", std::to_string(most)}, {"value", std::to_string(request.chunk_bytes())}});
}

absl::Status WriteAll(scheduler::Upload& upload, const transfer::PutMessage& message) {
  for (std::string_view piece : message.data) {
    if (absl::Status status = upload.Write(piece); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

ArrayServiceAdapter::ArrayServiceAdapter(CallEnvironment* environment, scheduler::Engine* engine,
                                         transfer::BulkGate* gate)
    : environment_(*environment), engine_(engine), gate_(gate) {
  using Put = grpc::internal::ClientStreamingHandler<ArrayServiceAdapter, grpc::ByteBuffer,
                                                     v1::PutArrayResponse>;
  MarkMethodStreamed(
      MethodIndex("PutArray"),
      new Put(
          [](ArrayServiceAdapter* self, grpc::ServerContext* context, PutReader* reader,
             v1::PutArrayResponse* response) {
            return Serve(self->environment_, context, "ArrayService/PutArray", [&](Call& call) {
              return Into(self->Put(call, reader), response->mutable_array());
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
                           if (stream->Read(&request)) return self->Fetch(call, request, stream);
                           if (call.cancelled()) return call.EndOfWait();
                           return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "",
                                               "malformed FetchArrayRequest");
                         });
          },
          this));
}

absl::StatusOr<v1::Array> ArrayServiceAdapter::Put(Call& call, PutReader* reader) {
  auto place = gate_->Enter(call.tenant());
  if (!place.ok()) return place.status();
  transfer::PutDecoder decoder;
  std::unique_ptr<scheduler::Upload> upload;
  grpc::ByteBuffer buffer;
  while (reader->Read(&buffer)) {
    auto slices = SlicesOf(buffer);
    if (!slices.ok()) return slices.status();
    buffer.Clear();
    auto message = decoder.Next(ViewsOf(*slices));
    if (!message.ok()) return message.status();
    if (upload == nullptr) {
      auto begun = engine_->BeginUpload(call.tenant(), *message->header, call.deadline());
      if (!begun.ok()) return PrefixField(begun.status(), "header.");
      upload = *std::move(begun);
      if (audit::Record* record = call.Audit()) {
        record->resource = message->header->parent() + "/arrays/" + message->header->array_id();
      }
    }
    if (message->chunk.has_value()) {
      if (absl::Status status = PutShared(call, *message->chunk, *upload); !status.ok())
        return status;
      continue;
    }
    // A tenant beyond its rate is read no faster: gRPC's flow control makes its client wait.
    absl::Duration delay = engine_->accounts().AddUpload(call.tenant(), message->data_bytes);
    if (audit::Record* record = call.Audit()) record->bytes_up += message->data_bytes;
    if (absl::Status status = WriteAll(*upload, *message); !status.ok()) return status;
    if (absl::Status status = call.AwaitUploadRate(delay); !status.ok()) return status;
  }
  // The end of a stream and its loss look alike; only the first may complete the array.
  if (call.cancelled()) return call.EndOfWait();
  if (upload == nullptr) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "header",
                        "missing; the call had no message");
  }
  return upload->Finish();
}

absl::Status ArrayServiceAdapter::PutShared(Call& call, const v1::RegionRange& chunk,
                                            scheduler::Upload& upload) {
  int64_t offset = chunk.offset(), left = chunk.size();
  do {
    const int64_t size = std::min(left, kSharedPieceBytes);
    // It ends with the first that is negative, or not within the region.
    if (absl::Status status = upload.WriteShared(offset, size); !status.ok()) return status;
    absl::Duration delay = engine_->accounts().AddUpload(call.tenant(), size);
    if (audit::Record* record = call.Audit()) record->bytes_up += size;
    if (absl::Status status = call.AwaitUploadRate(delay); !status.ok()) return status;
    if (call.cancelled()) return call.EndOfWait();
    offset += size;
    left -= size;
  } while (left > 0);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<scheduler::Download>> ArrayServiceAdapter::WaitForArray(
    Call& call, const v1::FetchArrayRequest& request) {
  auto array = engine_->GetArray(call.tenant(), request.name());
  if (!array.ok()) return array.status();
  if (array->state() == v1::Array::STATE_PENDING) {
    // Short waits, to notice a client that went away. Their downloads are dropped: the deadline
    // that they were given is over too soon.
    auto ready = WaitFor(call, call.deadline(), [&](absl::Time deadline) {
      return engine_->BeginDownload(call.tenant(), request, deadline).status();
    });
    if (!ready.ok()) return ready;
  }
  return engine_->BeginDownload(call.tenant(), request, call.deadline());
}

absl::Status ArrayServiceAdapter::Fetch(Call& call, const v1::FetchArrayRequest& request,
                                        FetchStream* stream) {
  auto chunk_bytes = ChunkBytes(request);
  if (!chunk_bytes.ok()) return chunk_bytes.status();
  auto place = gate_->Enter(call.tenant());
  if (!place.ok()) return place.status();
  auto download = WaitForArray(call, request);
  if (!download.ok()) return download.status();
  if (audit::Record* record = call.Audit()) record->resource = request.name();
  if (!stream->Write(transfer::EncodeFetchArray((*download)->array()))) return call.EndOfWait();
  return request.region().empty() ? SendData(call, **download, *chunk_bytes, stream)
                                  : SendShared(call, **download, *chunk_bytes, stream);
}

absl::Status ArrayServiceAdapter::SendData(Call& call, scheduler::Download& download,
                                           int64_t chunk_bytes, FetchStream* stream) {
  for (;;) {
    auto chunk = download.Next(chunk_bytes);
    if (!chunk.ok()) return chunk.status();
    if (chunk->bytes.empty()) return absl::OkStatus();
    CountDownload(call, static_cast<int64_t>(chunk->bytes.size()));
    if (!stream->Write(transfer::EncodeFetchData(chunk->bytes, std::move(chunk->lease))))
      return call.EndOfWait();
  }
}

absl::Status ArrayServiceAdapter::SendShared(Call& call, scheduler::Download& download,
                                             int64_t chunk_bytes, FetchStream* stream) {
  for (;;) {
    auto chunk = download.NextShared(chunk_bytes);
    if (!chunk.ok()) return chunk.status();
    if (chunk->size == 0) return absl::OkStatus();
    CountDownload(call, chunk->size);
    if (!stream->Write(transfer::EncodeFetchChunk(chunk->offset, chunk->size)))
      return call.EndOfWait();
  }
}

void ArrayServiceAdapter::CountDownload(Call& call, int64_t bytes) {
  engine_->accounts().AddDownload(call.tenant(), bytes);
  if (audit::Record* record = call.Audit()) record->bytes_down += bytes;
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
