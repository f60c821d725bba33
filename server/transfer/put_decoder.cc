#include "server/transfer/put_decoder.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/request_check.h"

namespace stride::transfer {
namespace {

constexpr uint32_t kHeaderField = 1;
constexpr uint32_t kDataField = 2;
constexpr uint32_t kChunkField = 3;
constexpr uint64_t kMaxLength = INT32_MAX;
constexpr RequestLimits kLimits{PutDecoder::kMaxHeaderBytes, 1 << 20};
// A header may occur only once, since the parts of its Duration must be checked together.
template <typename Message>
constexpr bool kOnce = std::is_same_v<Message, v1::PutArrayRequest::Header>;

enum class WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5
};

// Walks over scattered bytes as if they were one string.
class Cursor {
 public:
  explicit Cursor(absl::Span<const std::string_view> slices) : slices_(slices) {
    for (std::string_view slice : slices) remaining_ += slice.size();
    SkipEmpty();
  }

  bool done() const { return remaining_ == 0; }

  // Fails beyond `max_bytes`; bits past the 64th are dropped.
  bool ReadVarint(uint64_t* value, int max_bytes = 10) {
    *value = 0;
    for (int i = 0; i < max_bytes; ++i) {
      if (done()) return false;
      uint8_t byte = static_cast<uint8_t>(slices_[index_][offset_]);
      Advance(1);
      *value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
      if (byte < 0x80) return true;
    }
    return false;
  }

  // Appends the next `size` bytes to `out` as views.
  bool Take(uint64_t size, std::vector<std::string_view>* out) {
    if (size > remaining_) return false;
    while (size > 0) {
      std::string_view piece = slices_[index_].substr(offset_, size);
      out->push_back(piece);
      size -= piece.size();
      Advance(piece.size());
    }
    return true;
  }

 private:
  // `count` bytes within the present slice.
  void Advance(size_t count) {
    offset_ += count;
    remaining_ -= count;
    SkipEmpty();
  }

  void SkipEmpty() {
    while (index_ < slices_.size() && offset_ == slices_[index_].size()) {
      ++index_;
      offset_ = 0;
    }
  }

  absl::Span<const std::string_view> slices_;
  size_t index_ = 0;
  size_t offset_ = 0;
  uint64_t remaining_ = 0;
};

struct Tag {
  uint32_t field = 0;
  WireType type = WireType::kVarint;
};

bool ReadTag(Cursor& cursor, Tag* tag) {
  uint64_t value = 0;
  if (!cursor.ReadVarint(&value, 5)) return false;
  // Protobuf drops bits past the 32nd; field numbers are never 0.
  tag->field = static_cast<uint32_t>(value) >> 3;
  tag->type = static_cast<WireType>(value & 7);
  return tag->field != 0 && (value & 7) <= 5;
}

bool ReadLength(Cursor& cursor, uint64_t* length) {
  return cursor.ReadVarint(length, 5) && *length <= kMaxLength;
}

absl::Status Malformed(std::string_view field, std::string_view text) {
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field, text);
}

absl::Status TooLarge(std::string_view field, int64_t limit) {
  return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, field,
                      absl::StrCat("too many bytes in one message; the limit is ", limit),
                      {{"limit", std::to_string(limit)}});
}

// Merges a repeated message field, as protobuf does. If a part of it may occur only once
// (CheckRequest), so may the field.
template <typename Message>
absl::Status DecodeMessage(Cursor& cursor, std::string_view field, std::optional<Message>* out) {
  uint64_t length = 0;
  std::vector<std::string_view> pieces;
  if (!ReadLength(cursor, &length)) return Malformed(field, "malformed length");
  if (length > PutDecoder::kMaxHeaderBytes) return TooLarge(field, PutDecoder::kMaxHeaderBytes);
  if (!cursor.Take(length, &pieces)) return Malformed(field, "malformed: cut short");
  std::string bytes;
  for (std::string_view piece : pieces) bytes.append(piece);
  const std::string_view all = bytes;
  auto checked = CheckRequest(absl::MakeConstSpan(&all, 1), ShapeOf<Message>(), kLimits);
  if (!checked.ok()) return PrefixField(checked.status(), absl::StrCat(std::string(field), "."));
  if (out->has_value() && kOnce<Message>) return Malformed(field, "malformed: it is set twice");
  if (!out->has_value()) out->emplace();
  if ((*out)->MergeFromString(bytes)) return absl::OkStatus();
  return PrefixField(WhyMalformed(absl::MakeConstSpan(&all, 1), ShapeOf<Message>()),
                     absl::StrCat(std::string(field), "."));
}

absl::Status DecodeData(Cursor& cursor, PutMessage* message) {
  uint64_t length = 0;
  message->data.clear();
  if (!ReadLength(cursor, &length)) return Malformed("data", "malformed length");
  if (length > PutDecoder::kMaxDataBytes) return TooLarge("data", PutDecoder::kMaxDataBytes);
  if (!cursor.Take(length, &message->data)) return Malformed("data", "malformed: cut short");
  message->data_bytes = static_cast<int64_t>(length);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PutMessage> DecodePutMessage(absl::Span<const std::string_view> slices) {
  Cursor cursor(slices);
  PutMessage message;
  while (!cursor.done()) {
    Tag tag;
    if (!ReadTag(cursor, &tag))
      return Malformed("", "malformed: this is no PutArrayRequest of the contract");
    absl::Status status;
    if (tag.field == kHeaderField && tag.type == WireType::kBytes) {
      status = DecodeMessage(cursor, "header", &message.header);
    } else if (tag.field == kDataField && tag.type == WireType::kBytes) {
      status = DecodeData(cursor, &message);
    } else if (tag.field == kChunkField && tag.type == WireType::kBytes) {
      status = DecodeMessage(cursor, "chunk", &message.chunk);
    } else if (tag.field <= kChunkField || tag.type == WireType::kGroup ||
               tag.type == WireType::kEndGroup) {
      status = Malformed("", "malformed: a field is not of the contract's type");
    } else {
      status = UnknownField("PutArrayRequest", "", tag.field);
    }
    if (!status.ok()) return status;
  }
  return message;
}

absl::StatusOr<PutMessage> PutDecoder::Next(absl::Span<const std::string_view> slices) {
  absl::StatusOr<PutMessage> message = DecodePutMessage(slices);
  if (!message.ok()) return message;
  bool first = !std::exchange(header_seen_, true);
  if (first && !message->header.has_value()) {
    return Malformed("header", "missing; the first message of PutArray has the header alone");
  }
  if (first && message->data_bytes > 0) {
    return Malformed("data",
                     "not allowed next to the header; send data from the second message on");
  }
  if (first && message->chunk.has_value()) {
    return Malformed("chunk", "not allowed next to the header; send chunks from the second on");
  }
  if (!first && message->header.has_value()) {
    return Malformed("header", "allowed in the first message of PutArray only");
  }
  if (first) shares_region_ = !message->header->region().empty();
  if (shares_region_ && message->data_bytes > 0) {
    return Malformed("data", "not allowed where the header names a region; send chunks of it");
  }
  if (!first && shares_region_ && !message->chunk.has_value()) {
    return Malformed("chunk", "missing; every message after a header with a region has one");
  }
  if (!shares_region_ && message->chunk.has_value()) {
    return Malformed("chunk", "not allowed; the header names no region");
  }
  return message;
}

}  // namespace stride::transfer
