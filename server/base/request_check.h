#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "google/protobuf/message.h"

namespace stride {

// The judgement of a request's bytes before protobuf makes objects from them. Two bytes on the wire
// may become an object of 120, so that the size of a message bounds nothing; and protobuf drops
// what a newer client says, so that the daemon would do something else than was asked. The walk
// looks at tags and lengths alone: payloads and text are skipped. Any thread.

struct RequestLimits {
  int64_t wire_bytes = 0;    // the message as it travels
  int64_t parsed_bytes = 0;  // the objects that it becomes
};

// The fields of a message type and of those within it, made for walks. Lives for ever.
class MessageShape;
const MessageShape& ShapeOf(const google::protobuf::Descriptor* type);
template <typename Message>
const MessageShape& ShapeOf() {
  static const MessageShape& shape = ShapeOf(Message::descriptor());
  return shape;
}

// How many bytes the message that lies in `pieces` takes at most, once it is parsed. Errors name
// the field by its path from the message:
//   INVALID_ARGUMENT  malformed; a field with another type than the contract's; a group, of which
//                     the contract has none; too large, or too many elements; a Duration or
//                     Timestamp out of range, or with signs that differ
//   UNIMPLEMENTED     a field that this daemon does not know, by its number
absl::StatusOr<int64_t> CheckRequest(absl::Span<const std::string_view> pieces,
                                     const MessageShape& shape, const RequestLimits& limits);

// The errors of a field that the contract has not, and of one that is no field of it at all, for
// those who read messages themselves. `path` is of the message, empty for the whole.
absl::Status UnknownField(std::string_view type, std::string_view path, uint32_t number);

// Why protobuf takes a message that CheckRequest has passed for malformed: INVALID_ARGUMENT that
// names the text that is no UTF-8.
absl::Status WhyMalformed(absl::Span<const std::string_view> pieces, const MessageShape& shape);

}  // namespace stride
