#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <grpcpp/support/byte_buffer.h>

#include "absl/status/statusor.h"
#include "server/api/call.h"
#include "server/scheduler/service/array_service.h"
#include "server/session/tenant_accounts.h"
#include "server/transfer/bulk_gate.h"
#include "stride/v1/array_service.pb.h"

namespace stride::api {

// Where the messages of a PutArray come from.
class PutWire {
 public:
  virtual ~PutWire() = default;
  // The pieces of the next message, which stay until the one after it is read. False: there is
  // none, for a reason where `status` is one.
  virtual bool Read(std::vector<std::string_view>* message, absl::Status* status) = 0;
};

// Where those of a FetchArray go.
class FetchWire {
 public:
  virtual ~FetchWire() = default;
  // A serialized FetchArrayResponse, which may lend what it has. False: nobody is there any more.
  virtual bool Write(const grpc::ByteBuffer& message) = 0;
};

// What PutArray and FetchArray do, whatever their messages travel by. They see the bytes of
// messages rather than protobuf objects, so that payload goes from where it was received to
// staging, and from staging to the socket, without a copy between (server/transfer). Thread-safe.
class ArrayTransfer {
 public:
  // All must outlive it.
  ArrayTransfer(scheduler::ArrayService* arrays, session::TenantAccounts* accounts,
                transfer::BulkGate* gate)
      : arrays_(arrays), accounts_(accounts), gate_(gate) {}

  absl::StatusOr<v1::Array> Put(Call& call, PutWire& wire);
  absl::Status Fetch(Call& call, const v1::FetchArrayRequest& request, FetchWire& wire);

 private:
  // The next bytes of an upload, from its region.
  absl::Status PutShared(Call& call, const v1::RegionRange& chunk, scheduler::Upload& upload);
  absl::Status SendData(Call& call, scheduler::Download& download, int64_t chunk_bytes,
                        FetchWire& wire);
  // Into the call's region, of which the client is told.
  absl::Status SendShared(Call& call, scheduler::Download& download, int64_t chunk_bytes,
                          FetchWire& wire);
  void CountDownload(Call& call, int64_t bytes);
  absl::StatusOr<std::unique_ptr<scheduler::Download>> WaitForArray(
      Call& call, const v1::FetchArrayRequest& request);

  scheduler::ArrayService* const arrays_;
  session::TenantAccounts* const accounts_;
  transfer::BulkGate* const gate_;
};

}  // namespace stride::api
