#include "server/api/array_transfer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/steady_time.h"
#include "server/transfer/fetch_encoder.h"
#include "server/transfer/put_decoder.h"

namespace stride::api {
namespace {

// Bytes that a call reads from the region before it checks whether its client is still connected
// and its tenant within its rate.
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

absl::Status WriteAll(engine::Upload& upload, const transfer::PutMessage& message) {
  for (std::string_view piece : message.data) {
    if (absl::Status status = upload.Write(piece); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::Array> ArrayTransfer::Put(Call& call, PutWire& wire) {
  auto place = gate_->Enter(call.tenant());
  if (!place.ok()) return place.status();
  transfer::PutDecoder decoder;
  std::unique_ptr<engine::Upload> upload;
  absl::Status status;
  for (std::vector<std::string_view> pieces; wire.Read(&pieces, &status);) {
    auto message = decoder.Next(pieces);
    if (!message.ok()) return message.status();
    if (upload == nullptr) {
      auto begun = arrays_->BeginUpload(call.tenant(), *message->header, call.deadline());
      if (!begun.ok()) return PrefixField(begun.status(), "header.");
      upload = *std::move(begun);
      if (audit::Record* record = call.Audit()) {
        record->resource = message->header->parent() + "/arrays/" + message->header->array_id();
      }
    }
    if (message->chunk.has_value()) {
      status = PutShared(call, *message->chunk, *upload);
      if (!status.ok()) return status;
      continue;
    }
    // Reading slows down for a tenant beyond its rate, and then its client waits.
    absl::Duration delay = accounts_->AddUpload(call.tenant(), message->data_bytes);
    if (audit::Record* record = call.Audit()) record->bytes_up += message->data_bytes;
    status = WriteAll(*upload, *message);
    if (status.ok()) status = call.AwaitUploadRate(delay);
    if (!status.ok()) return status;
  }
  if (!status.ok()) return status;
  // The end of a stream and its loss look equal; only the end may complete the array.
  if (call.cancelled()) return call.EndOfWait();
  if (upload == nullptr) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "header",
                        "missing; the call had no message");
  }
  return upload->Finish();
}

absl::Status ArrayTransfer::PutShared(Call& call, const v1::RegionRange& chunk,
                                      engine::Upload& upload) {
  int64_t offset = chunk.offset(), left = chunk.size();
  do {
    const int64_t size = std::min(left, kSharedPieceBytes);
    // Ends with the first range that is negative or outside the region.
    if (absl::Status status = upload.WriteShared(offset, size); !status.ok()) return status;
    absl::Duration delay = accounts_->AddUpload(call.tenant(), size);
    if (audit::Record* record = call.Audit()) record->bytes_up += size;
    if (absl::Status status = call.AwaitUploadRate(delay); !status.ok()) return status;
    if (call.cancelled()) return call.EndOfWait();
    offset += size;
    left -= size;
  } while (left > 0);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<engine::Download>> ArrayTransfer::WaitForArray(
    Call& call, const v1::FetchArrayRequest& request) {
  auto array = arrays_->Get(call.tenant(), request.name());
  if (!array.ok()) return array.status();
  if (array->state() == v1::Array::STATE_PENDING) {
    // Short waits detect a disconnected client. Their downloads are dropped, since their deadline
    // is too early.
    auto ready = WaitFor(call, call.deadline(), [&](SteadyTime deadline) {
      return arrays_->BeginDownload(call.tenant(), request, deadline).status();
    });
    if (!ready.ok()) return ready;
  }
  return arrays_->BeginDownload(call.tenant(), request, call.deadline());
}

absl::Status ArrayTransfer::Fetch(Call& call, const v1::FetchArrayRequest& request,
                                  FetchWire& wire) {
  auto chunk_bytes = ChunkBytes(request);
  if (!chunk_bytes.ok()) return chunk_bytes.status();
  auto place = gate_->Enter(call.tenant());
  if (!place.ok()) return place.status();
  auto download = WaitForArray(call, request);
  if (!download.ok()) return download.status();
  if (audit::Record* record = call.Audit()) record->resource = request.name();
  if (!wire.Write(transfer::EncodeFetchArray((*download)->array()))) return call.EndOfWait();
  return request.region().empty() ? SendData(call, **download, *chunk_bytes, wire)
                                  : SendShared(call, **download, *chunk_bytes, wire);
}

absl::Status ArrayTransfer::SendData(Call& call, engine::Download& download, int64_t chunk_bytes,
                                     FetchWire& wire) {
  for (;;) {
    auto chunk = download.Next(chunk_bytes);
    if (!chunk.ok()) return chunk.status();
    if (chunk->bytes.empty()) return absl::OkStatus();
    CountDownload(call, static_cast<int64_t>(chunk->bytes.size()));
    if (!wire.Write(transfer::EncodeFetchData(chunk->bytes, std::move(chunk->lease))))
      return call.EndOfWait();
  }
}

absl::Status ArrayTransfer::SendShared(Call& call, engine::Download& download, int64_t chunk_bytes,
                                       FetchWire& wire) {
  for (;;) {
    auto chunk = download.NextShared(chunk_bytes);
    if (!chunk.ok()) return chunk.status();
    if (chunk->size == 0) return absl::OkStatus();
    CountDownload(call, chunk->size);
    if (!wire.Write(transfer::EncodeFetchChunk(chunk->offset, chunk->size)))
      return call.EndOfWait();
  }
}

void ArrayTransfer::CountDownload(Call& call, int64_t bytes) {
  accounts_->AddDownload(call.tenant(), bytes);
  if (audit::Record* record = call.Audit()) record->bytes_down += bytes;
}

}  // namespace stride::api
