#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "google/protobuf/message.h"

namespace stride {

// Checks a request's bytes before protobuf creates objects from them. Two bytes on the wire may
// become an object of 120 bytes, so a message's size is no bound. Protobuf drops unknown fields of
// a newer client, so the daemon would do something else than the client requested. The check reads
// only tags and lengths and skips payloads and text. Any thread.

struct RequestLimits {
  int64_t wire_bytes = 0;    // the message on the wire
  int64_t parsed_bytes = 0;  // the objects created from it
};

// The fields of a message type and of nested types, prepared for checks. Never destroyed.
class MessageShape;
const MessageShape& ShapeOf(const google::protobuf::Descriptor* type);
template <typename Message>
const MessageShape& ShapeOf() {
  static const MessageShape& shape = ShapeOf(Message::descriptor());
  return shape;
}

// Returns an upper bound of the bytes that the message in `pieces` takes once parsed. Errors name
// the field by its path from the message:
//   INVALID_ARGUMENT  malformed; a field with another type than the contract's; a group, of which
//                     the contract has none; too large, or too many elements; a Duration or
//                     Timestamp out of range, or with signs that differ
//   UNIMPLEMENTED     a field that this daemon does not know, by its number
absl::StatusOr<int64_t> CheckRequest(absl::Span<const std::string_view> pieces,
                                     const MessageShape& shape, const RequestLimits& limits);

// Errors for a field that the contract lacks, and for bytes that are no field, for code that parses
// messages itself. `path`: that of the message, empty for the root.
absl::Status UnknownField(std::string_view type, std::string_view path, uint32_t number);

// Why protobuf rejects a message that CheckRequest accepted: INVALID_ARGUMENT that names the text
// that is not UTF-8.
absl::Status WhyMalformed(absl::Span<const std::string_view> pieces, const MessageShape& shape);

}  // namespace stride
