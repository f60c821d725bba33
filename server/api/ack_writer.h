#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/sync_stream.h>

#include "stride/v1/compute_service.pb.h"

namespace stride::api {

// Gathers results into messages: a message costs tens of microseconds whatever it holds. One
// thread.
class AckWriter {
 public:
  using Stream = grpc::ServerReaderWriter<v1::ExecuteResponse, v1::ExecuteRequest>;
  // Of a result that still fits a message of 4 MiB with its framing.
  static constexpr int64_t kMaxResultBytes = (int64_t{4} << 20) - 256;

  explicit AckWriter(Stream* stream) : stream_(*stream) {}
  ~AckWriter() { Forget(); }

  // Writes first when the message would grow too large. False when the stream is broken, as of
  // Flush.
  bool Add(std::shared_ptr<v1::CommandResult> result);
  bool Flush();

 private:
  void Forget();

  Stream& stream_;
  // Lists the results without owning them.
  v1::ExecuteResponse response_;
  std::vector<std::shared_ptr<v1::CommandResult>> results_;
  int64_t bytes_ = 0;
};

}  // namespace stride::api
