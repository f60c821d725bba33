#pragma once

#include <string_view>

#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "google/protobuf/message_lite.h"
#include "server/api/byte_budget.h"
#include "server/base/request_check.h"

namespace stride::api {

// Limits of a request, by its method's content: names and numbers, or sources, arrays and commands.
inline constexpr RequestLimits kControlRequest{64 << 10, 1 << 20};
inline constexpr RequestLimits kContentRequest{(4 << 20) + (64 << 10), 32 << 20};
// For local connections, whose frames are larger.
inline constexpr RequestLimits kLocalRequest{16 << 20, 48 << 20};
// Smaller requests are not charged: the number of calls bounds them.
inline constexpr int64_t kUncharged = 16 << 10;

// The only way from a client's bytes to a message: checks the bytes (CheckRequest), charges their
// memory to the call, and parses them. An error leaves the charge unchanged. After OK only the
// objects are charged, since the bytes are soon released.
absl::Status ParseRequest(absl::Span<const std::string_view> pieces, const MessageShape& shape,
                          const RequestLimits& limits, ByteBudget::Charge* charge,
                          google::protobuf::MessageLite* request);
absl::Status ParseRequest(const grpc::ByteBuffer& bytes, const MessageShape& shape,
                          const RequestLimits& limits, ByteBudget::Charge* charge,
                          google::protobuf::MessageLite* request);

// RESOURCE_EXHAUSTED: the message exceeds the size limit.
absl::Status SerializeResponse(const google::protobuf::MessageLite& response,
                               grpc::ByteBuffer* bytes);

}  // namespace stride::api
