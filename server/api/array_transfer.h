#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <grpcpp/support/byte_buffer.h>

#include "absl/status/statusor.h"
#include "server/api/call.h"
#include "server/engine/service/array_service.h"
#include "server/session/tenant_accounts.h"
#include "server/transfer/bulk_gate.h"
#include "stride/v1/array_service.pb.h"

namespace stride::api {

// Source of the messages of a PutArray call.
class PutWire {
 public:
  virtual ~PutWire() = default;
  // Reads the pieces of the next message; they stay valid until the next read. False: no more
  // messages, with an error in `status` if there is one.
  virtual bool Read(std::vector<std::string_view>* message, absl::Status* status) = 0;
};

// Destination of the messages of a FetchArray call.
class FetchWire {
 public:
  virtual ~FetchWire() = default;
  // Writes a serialized FetchArrayResponse, which may lend its memory. False: the client is
  // disconnected.
  virtual bool Write(const grpc::ByteBuffer& message) = 0;
};

// PutArray and FetchArray over any transport. They work on the bytes of messages instead of
// protobuf objects, so that payload moves from the receive buffer to staging, and from staging to
// the socket, without a copy (server/transfer). Thread-safe.
class ArrayTransfer {
 public:
  // All must outlive this object.
  ArrayTransfer(engine::ArrayService* arrays, session::TenantAccounts* accounts,
                transfer::BulkGate* gate)
      : arrays_(arrays), accounts_(accounts), gate_(gate) {}

  absl::StatusOr<v1::Array> Put(Call& call, PutWire& wire);
  absl::Status Fetch(Call& call, const v1::FetchArrayRequest& request, FetchWire& wire);

 private:
  // Writes the next bytes of an upload from its region.
  absl::Status PutShared(Call& call, const v1::RegionRange& chunk, engine::Upload& upload);
  absl::Status SendData(Call& call, engine::Download& download, int64_t chunk_bytes,
                        FetchWire& wire);
  // Copies into the call's region, and reports the range to the client.
  absl::Status SendShared(Call& call, engine::Download& download, int64_t chunk_bytes,
                          FetchWire& wire);
  void CountDownload(Call& call, int64_t bytes);
  absl::StatusOr<std::unique_ptr<engine::Download>> WaitForArray(
      Call& call, const v1::FetchArrayRequest& request);

  engine::ArrayService* const arrays_;
  session::TenantAccounts* const accounts_;
  transfer::BulkGate* const gate_;
};

}  // namespace stride::api
