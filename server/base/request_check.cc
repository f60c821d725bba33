#include "server/base/request_check.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "google/protobuf/descriptor.pb.h"
#include "server/base/error.h"

namespace stride {

namespace pb = google::protobuf;

// Bytes that protobuf and the allocator take in addition to an object.
constexpr int64_t kPerAllocation = 16;
// Bytes of an element's pointer in its list, which grows by doubling.
constexpr int64_t kPerElement = 16 + kPerAllocation;
constexpr int64_t kMapNode = 96;
// A list of numbers grows by doubling.
constexpr int64_t kGrowth = 2;

struct FieldShape {
  enum class Kind : uint8_t { kUnknown, kNumber, kText, kBytes, kMessage };

  Kind kind = Kind::kUnknown;
  uint8_t wire_type = 0;  // wire type of one value
  bool repeated = false;
  bool once = false;   // at most one occurrence allowed, since parts are checked separately
  int64_t cost = 0;    // bytes of one value, without its payload
  int64_t packed = 0;  // bytes of memory per byte of packed values
  const MessageShape* message = nullptr;
  const pb::FieldDescriptor* field = nullptr;
};

class MessageShape {
 public:
  enum class Time : uint8_t { kNone, kDuration, kTimestamp };

  const FieldShape* Find(uint32_t number) const {
    return number < fields.size() && fields[number].kind != FieldShape::Kind::kUnknown
               ? &fields[number]
               : nullptr;
  }

  std::string name;
  Time time = Time::kNone;
  bool has_time = false;           // it or a message within it has a time
  int64_t size = 0;                // bytes of the object
  std::vector<FieldShape> fields;  // by number
};

namespace {

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };
constexpr int64_t kMaxDurationSeconds = 315576000000;  // 10,000 years, the type's limit
constexpr int64_t kMinTimestamp = -62135596800;        // 0001-01-01
constexpr int64_t kMaxTimestamp = 253402300799;        // 9999-12-31
constexpr int64_t kMaxNanos = 999999999;
// The contract's messages nest a dozen deep. Protobuf's own limit is 100.
constexpr int kMaxDepth = 100;

uint8_t WireTypeOf(const pb::FieldDescriptor& field) {
  using F = pb::FieldDescriptor;
  switch (field.type()) {
    case F::TYPE_DOUBLE:
    case F::TYPE_FIXED64:
    case F::TYPE_SFIXED64:
      return kFixed64;
    case F::TYPE_FLOAT:
    case F::TYPE_FIXED32:
    case F::TYPE_SFIXED32:
      return kFixed32;
    case F::TYPE_STRING:
    case F::TYPE_BYTES:
    case F::TYPE_MESSAGE:
    case F::TYPE_GROUP:
      return kLength;
    default:
      return kVarint;
  }
}

int64_t NumberSize(const pb::FieldDescriptor& field) {
  using F = pb::FieldDescriptor;
  switch (field.cpp_type()) {
    case F::CPPTYPE_INT64:
    case F::CPPTYPE_UINT64:
    case F::CPPTYPE_DOUBLE:
      return 8;
    case F::CPPTYPE_BOOL:
      return 1;
    default:
      return 4;
  }
}

// All shapes requested so far. Never destroyed.
class Shapes {
 public:
  const MessageShape& Of(const pb::Descriptor* type) {
    absl::MutexLock lock(&mutex_);
    return *Make(type);
  }

 private:
  // No message of the contract contains itself. For such a message this returns the shape under
  // construction, which suffices for the walk.
  MessageShape* Make(const pb::Descriptor* type) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::unique_ptr<MessageShape>& shape = shapes_[type];
    if (shape != nullptr) return shape.get();
    shape = std::make_unique<MessageShape>();
    MessageShape* made = shape.get();
    made->name = type->name();
    if (type->full_name() == "google.protobuf.Duration") made->time = MessageShape::Time::kDuration;
    if (type->full_name() == "google.protobuf.Timestamp")
      made->time = MessageShape::Time::kTimestamp;
    made->has_time = made->time != MessageShape::Time::kNone;
    const bool entry = type->options().map_entry();
    if (!entry) {
      const pb::Message* prototype = pb::MessageFactory::generated_factory()->GetPrototype(type);
      made->size = static_cast<int64_t>(prototype->SpaceUsedLong()) + kPerAllocation;
    } else {
      made->size = kMapNode;
    }
    for (int i = 0; i < type->field_count(); ++i) {
      const pb::FieldDescriptor& field = *type->field(i);
      const auto number = static_cast<size_t>(field.number());
      if (made->fields.size() <= number) made->fields.resize(number + 1);
      FieldShape filled = ShapeOfField(field);
      made->has_time |= filled.message != nullptr && filled.message->has_time;
      made->fields[number] = filled;
    }
    return made;
  }

  FieldShape ShapeOfField(const pb::FieldDescriptor& field) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    FieldShape shape;
    shape.field = &field;
    shape.wire_type = WireTypeOf(field);
    shape.repeated = field.is_repeated();
    const int64_t element = shape.repeated ? kPerElement : 0;
    switch (field.cpp_type()) {
      case pb::FieldDescriptor::CPPTYPE_MESSAGE:
        shape.kind = FieldShape::Kind::kMessage;
        shape.message = Make(field.message_type());
        shape.cost = element + shape.message->size;
        shape.once = !shape.repeated && shape.message->has_time;
        break;
      case pb::FieldDescriptor::CPPTYPE_STRING:
        shape.kind = field.type() == pb::FieldDescriptor::TYPE_STRING ? FieldShape::Kind::kText
                                                                      : FieldShape::Kind::kBytes;
        shape.cost = element + static_cast<int64_t>(sizeof(std::string)) + kPerAllocation;
        break;
      default:
        shape.kind = FieldShape::Kind::kNumber;
        if (!shape.repeated) break;
        shape.cost = kGrowth * NumberSize(field);
        shape.packed = kGrowth * (shape.wire_type == kVarint ? NumberSize(field) : 1);
    }
    return shape;
  }

  absl::Mutex mutex_;
  std::map<const pb::Descriptor*, std::unique_ptr<MessageShape>> shapes_ ABSL_GUARDED_BY(mutex_);
};

// Scattered bytes as if they were one string.
class Cursor {
 public:
  explicit Cursor(absl::Span<const std::string_view> pieces) : pieces_(pieces) { NextPiece(); }

  uint64_t position() const { return stop_position_ - static_cast<uint64_t>(stop_ - at_); }

  // Returns false at the end of the bytes; drops bits beyond the 64th.
  bool ReadVarint(uint64_t* value, int max_bytes = 10) {
    if (at_ != stop_ && *at_ < 0x80) {
      *value = *at_++;
      return true;
    }
    *value = 0;
    for (int i = 0; i < max_bytes; ++i) {
      if (at_ == stop_ && !NextPiece()) return false;
      const uint8_t byte = *at_++;
      *value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
      if (byte < 0x80) return true;
    }
    return false;
  }

  bool Skip(uint64_t size) {
    while (size > static_cast<uint64_t>(stop_ - at_)) {
      size -= static_cast<uint64_t>(stop_ - at_);
      at_ = stop_;
      if (!NextPiece()) return false;
    }
    at_ += size;
    return true;
  }

  bool Copy(uint64_t size, std::string* out) {
    while (size > 0) {
      if (at_ == stop_ && !NextPiece()) return false;
      const auto taken = std::min<uint64_t>(size, static_cast<uint64_t>(stop_ - at_));
      out->append(reinterpret_cast<const char*>(at_), taken);
      at_ += taken;
      size -= taken;
    }
    return true;
  }

 private:
  bool NextPiece() {
    while (next_ < pieces_.size()) {
      const std::string_view piece = pieces_[next_++];
      if (piece.empty()) continue;
      at_ = reinterpret_cast<const uint8_t*>(piece.data());
      stop_ = at_ + piece.size();
      stop_position_ += piece.size();
      return true;
    }
    return false;
  }

  const absl::Span<const std::string_view> pieces_;
  size_t next_ = 0;
  const uint8_t* at_ = nullptr;
  const uint8_t* stop_ = nullptr;
  uint64_t stop_position_ = 0;  // position of stop_ in the whole input
};

enum class Fault {
  kNone,
  kMalformed,
  kWrongType,
  kGroup,
  kUnknown,
  kTooMany,
  kTwice,
  kTimeRange,
  kTimeSigns,
  kNotUtf8,
};

struct Found {
  Fault fault = Fault::kNone;
  uint32_t number = 0;  // the field's number
  uint64_t begin = 0;   // position of its tag
};

// Common part of all walks: tags, lengths and checked numbers.
class Walk {
 public:
  Walk(absl::Span<const std::string_view> pieces, int64_t max_cost, bool look_at_text)
      : cursor_(pieces), max_cost_(max_cost), look_at_text_(look_at_text) {}

  bool Message(const MessageShape& shape, uint64_t end, int depth) {
    if (depth > kMaxDepth) return Fail(Fault::kMalformed, 0, cursor_.position());
    uint64_t seen = 0;  // bits of `once` fields seen so far
    uint64_t seconds = 0, nanos = 0;
    const uint64_t begin = cursor_.position();
    while (cursor_.position() < end) {
      const uint64_t at = cursor_.position();
      uint64_t tag = 0;
      if (!cursor_.ReadVarint(&tag, 5)) return Fail(Fault::kMalformed, 0, at);
      const auto number = static_cast<uint32_t>(tag) >> 3;
      const auto wire_type = static_cast<uint32_t>(tag) & 7;
      if (number == 0 || wire_type > kFixed32) return Fail(Fault::kMalformed, number, at);
      if (wire_type == 3 || wire_type == 4) return Fail(Fault::kGroup, number, at);
      const FieldShape* field = shape.Find(number);
      if (field == nullptr) return Fail(Fault::kUnknown, number, at);
      const bool packed = field->packed > 0 && wire_type == kLength && field->wire_type != kLength;
      if (wire_type != field->wire_type && !packed) return Fail(Fault::kWrongType, number, at);
      uint64_t value = 0;
      switch (wire_type) {
        case kVarint:
          if (!cursor_.ReadVarint(&value)) return Fail(Fault::kMalformed, number, at);
          if (number == 1) seconds = value;
          if (number == 2) nanos = value;
          break;
        case kFixed64:
        case kFixed32:
          if (!cursor_.Skip(wire_type == kFixed64 ? 8 : 4))
            return Fail(Fault::kMalformed, number, at);
          break;
        default:
          if (!cursor_.ReadVarint(&value, 5) || value > end - std::min(end, cursor_.position()))
            return Fail(Fault::kMalformed, number, at);
      }
      cost_ += field->cost;
      if (wire_type == kLength && !TakeLength(*field, number, packed, value, at, &seen, depth))
        return false;
      if (cost_ > max_cost_) return Fail(Fault::kTooMany, number, at);
      if (cursor_.position() > end) return Fail(Fault::kMalformed, number, at);
    }
    if (shape.time == MessageShape::Time::kNone) return true;
    return Time(shape.time, static_cast<int64_t>(seconds), static_cast<int32_t>(nanos), begin);
  }

  int64_t cost() const { return cost_; }
  const Found& found() const { return found_; }

 private:
  bool TakeLength(const FieldShape& field, uint32_t number, bool packed, uint64_t size, uint64_t at,
                  uint64_t* seen, int depth) {
    if (field.kind == FieldShape::Kind::kMessage) {
      if (field.once) {
        if (number >= 64 || (*seen >> number & 1) != 0) return Fail(Fault::kTwice, number, at);
        *seen |= uint64_t{1} << number;
      }
      if (cost_ > max_cost_) return Fail(Fault::kTooMany, number, at);
      const uint64_t end = cursor_.position() + size;
      return Message(*field.message, end, depth + 1);
    }
    cost_ += packed ? field.packed * static_cast<int64_t>(size) - field.cost
                    : static_cast<int64_t>(size);
    if (!look_at_text_ || field.kind != FieldShape::Kind::kText)
      return cursor_.Skip(size) || Fail(Fault::kMalformed, number, at);
    std::string text;
    if (!cursor_.Copy(size, &text)) return Fail(Fault::kMalformed, number, at);
    return IsUtf8(text) || Fail(Fault::kNotUtf8, number, at);
  }

  // By protobuf's rules: overlong forms, surrogates and code points beyond U+10FFFF are invalid.
  static bool IsUtf8(std::string_view text) {
    for (size_t i = 0; i < text.size();) {
      const auto lead = static_cast<uint8_t>(text[i]);
      const size_t size = lead < 0x80                   ? 1
                          : lead >= 0xc2 && lead < 0xe0 ? 2
                          : lead >= 0xe0 && lead < 0xf0 ? 3
                          : lead >= 0xf0 && lead < 0xf5 ? 4
                                                        : 0;
      if (size == 0 || size > text.size() - i) return false;
      for (size_t k = 1; k < size; ++k)
        if ((static_cast<uint8_t>(text[i + k]) & 0xc0) != 0x80) return false;
      const auto second = static_cast<uint8_t>(size > 1 ? text[i + 1] : 0);
      if ((lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90) ||
          (lead == 0xed && second >= 0xa0) || (lead == 0xf4 && second >= 0x90))
        return false;
      i += size;
    }
    return true;
  }

  bool Time(MessageShape::Time time, int64_t seconds, int64_t nanos, uint64_t begin) {
    if (time == MessageShape::Time::kTimestamp) {
      const bool fine =
          seconds >= kMinTimestamp && seconds <= kMaxTimestamp && nanos >= 0 && nanos <= kMaxNanos;
      return fine || Fail(Fault::kTimeRange, 0, begin);
    }
    if (seconds < -kMaxDurationSeconds || seconds > kMaxDurationSeconds || nanos < -kMaxNanos ||
        nanos > kMaxNanos)
      return Fail(Fault::kTimeRange, 0, begin);
    const bool differ = (seconds < 0 && nanos > 0) || (seconds > 0 && nanos < 0);
    return !differ || Fail(Fault::kTimeSigns, 0, begin);
  }

  bool Fail(Fault fault, uint32_t number, uint64_t begin) {
    found_ = {fault, number, begin};
    return false;
  }

  Cursor cursor_;
  const int64_t max_cost_;
  const bool look_at_text_;
  int64_t cost_ = 0;
  Found found_;
};

// The path to the message in which the fault at `target` lies, such as `job.operations[3]`. Walks
// the bytes again and counts elements.
class Path {
 public:
  Path(absl::Span<const std::string_view> pieces, uint64_t target)
      : cursor_(pieces), target_(target) {}

  std::string To(const MessageShape& shape, uint64_t end) {
    std::map<uint32_t, int> counts;
    while (cursor_.position() < end && cursor_.position() < target_) {
      uint64_t tag = 0, value = 0;
      if (!cursor_.ReadVarint(&tag, 5)) break;
      const FieldShape* field = shape.Find(static_cast<uint32_t>(tag) >> 3);
      if (field == nullptr) break;
      const int index = counts[static_cast<uint32_t>(tag) >> 3]++;
      bool more = true;
      switch (tag & 7) {
        case kVarint:
          more = cursor_.ReadVarint(&value);
          break;
        case kFixed64:
          more = cursor_.Skip(8);
          break;
        case kFixed32:
          more = cursor_.Skip(4);
          break;
        default: {
          more = cursor_.ReadVarint(&value, 5);
          const uint64_t inner = cursor_.position() + value;
          if (field->kind == FieldShape::Kind::kMessage && more && target_ < inner &&
              target_ >= cursor_.position()) {
            Add(field->field->name(), field->repeated ? index : -1);
            return To(*field->message, inner);
          }
          more = more && cursor_.Skip(value);
        }
      }
      if (!more) break;
    }
    return path_;
  }

 private:
  void Add(const std::string& name, int index) {
    absl::StrAppend(&path_, path_.empty() ? "" : ".", name);
    if (index >= 0) absl::StrAppend(&path_, "[", index, "]");
  }

  Cursor cursor_;
  const uint64_t target_;
  std::string path_;
};

std::string Under(const std::string& path, std::string_view name) {
  return absl::StrCat(path, path.empty() ? "" : ".", std::string(name));
}

// The contract's name for a field, or its number.
std::string NameOf(const MessageShape& root, const std::string& path, uint32_t number) {
  const MessageShape* shape = &root;
  std::string_view rest = path;
  while (!rest.empty() && shape != nullptr) {
    const std::string_view part = rest.substr(0, rest.find('.'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::string_view name = part.substr(0, part.find('['));
    const MessageShape* inner = nullptr;
    for (const FieldShape& field : shape->fields)
      if (field.field != nullptr && field.field->name() == name) inner = field.message;
    shape = inner;
  }
  const FieldShape* field = shape == nullptr ? nullptr : shape->Find(number);
  return field == nullptr ? absl::StrCat(number) : field->field->name();
}

absl::Status Explain(const Found& found, absl::Span<const std::string_view> pieces, uint64_t size,
                     const MessageShape& shape, const RequestLimits& limits) {
  const std::string path = Path(pieces, found.begin).To(shape, size);
  const std::string field =
      found.number == 0 ? path : Under(path, NameOf(shape, path, found.number));
  auto invalid = [&](std::string_view text) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field, text);
  };
  switch (found.fault) {
    case Fault::kUnknown:
      return UnknownField(shape.name, path, found.number);
    case Fault::kTooMany:
      return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, field,
                          absl::StrCat("the message has too many elements: they would take more "
                                       "memory than the limit, which is ",
                                       limits.parsed_bytes, " bytes"),
                          {{"limit", absl::StrCat(limits.parsed_bytes)}});
    case Fault::kWrongType:
      return invalid("malformed: its wire type is not that of the contract");
    case Fault::kGroup:
      return invalid(absl::StrCat("malformed: field ", found.number,
                                  " is a group, of which the contract has none"));
    case Fault::kTwice:
      return invalid("malformed: it is set twice");
    case Fault::kTimeRange:
      return invalid(
          "out of range: a duration is within 315,576,000,000 s, a time within the years "
          "1 to 9999, nanos are below 1,000,000,000");
    case Fault::kTimeSigns:
      return invalid("seconds and nanos of a duration must have the same sign");
    case Fault::kNotUtf8:
      return invalid("malformed: the text is not valid UTF-8");
    default:
      return invalid(absl::StrCat("malformed: this is no ", shape.name, " of the contract"));
  }
}

uint64_t SizeOf(absl::Span<const std::string_view> pieces) {
  uint64_t size = 0;
  for (std::string_view piece : pieces) size += piece.size();
  return size;
}

}  // namespace

const MessageShape& ShapeOf(const pb::Descriptor* type) {
  static Shapes& shapes = *new Shapes();
  return shapes.Of(type);
}

absl::Status UnknownField(std::string_view type, std::string_view path, uint32_t number) {
  const std::string where(path.empty() ? type : path);
  const std::string text =
      absl::StrCat(where, " has a field ", number,
                   " that this daemon does not know; leave it out, or use a daemon that knows it");
  return AtField(NotImplemented(absl::StrCat("field ", number, " of ", where), text),
                 Under(std::string(path), absl::StrCat(number)), text);
}

absl::StatusOr<int64_t> CheckRequest(absl::Span<const std::string_view> pieces,
                                     const MessageShape& shape, const RequestLimits& limits) {
  const uint64_t size = SizeOf(pieces);
  if (size > static_cast<uint64_t>(limits.wire_bytes)) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, "",
        absl::StrCat("a ", shape.name, " has at most ", limits.wire_bytes, " bytes, not ", size),
        {{"limit", absl::StrCat(limits.wire_bytes)}, {"value", absl::StrCat(size)}});
  }
  Walk walk(pieces, limits.parsed_bytes - shape.size, /*look_at_text=*/false);
  if (walk.Message(shape, size, 0)) return walk.cost() + shape.size;
  return Explain(walk.found(), pieces, size, shape, limits);
}

absl::Status WhyMalformed(absl::Span<const std::string_view> pieces, const MessageShape& shape) {
  const uint64_t size = SizeOf(pieces);
  Walk walk(pieces, INT64_MAX, /*look_at_text=*/true);
  Found found{Fault::kMalformed, 0, 0};
  if (!walk.Message(shape, size, 0)) found = walk.found();
  return Explain(found, pieces, size, shape, {});
}

}  // namespace stride
