#include "server/api/request_parser.h"

#include <cstdint>
#include <limits>
#include <vector>

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/slice.h>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/zero_copy_stream.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

class PiecesInput final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit PiecesInput(absl::Span<const std::string_view> pieces) : pieces_(pieces) {}

  bool Next(const void** data, int* size) override {
    if (next_ == pieces_.size()) return false;
    const std::string_view piece = pieces_[next_++].substr(offset_);
    offset_ = 0;
    *data = piece.data();
    *size = static_cast<int>(piece.size());
    count_ += *size;
    return true;
  }
  void BackUp(int count) override {
    --next_;
    offset_ = pieces_[next_].size() - static_cast<size_t>(count);
    count_ -= count;
  }
  bool Skip(int count) override {
    const void* data;
    int size;
    while (count > 0 && Next(&data, &size)) {
      if (size > count) BackUp(size - count);
      count -= std::min(size, count);
    }
    return count == 0;
  }
  int64_t ByteCount() const override { return count_; }

 private:
  const absl::Span<const std::string_view> pieces_;
  size_t next_ = 0;
  size_t offset_ = 0;
  int64_t count_ = 0;
};

bool Parse(absl::Span<const std::string_view> pieces, google::protobuf::MessageLite* request) {
  if (pieces.size() == 1)
    return request->ParseFromArray(pieces[0].data(), static_cast<int>(pieces[0].size()));
  PiecesInput input(pieces);
  return request->ParseFromZeroCopyStream(&input);
}

std::string_view Text(const grpc::Slice& slice) {
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

}  // namespace

absl::Status ParseRequest(absl::Span<const std::string_view> pieces, const MessageShape& shape,
                          const RequestLimits& limits, ByteBudget::Charge* charge,
                          google::protobuf::MessageLite* request) {
  auto parsed_bytes = CheckRequest(pieces, shape, limits);
  if (!parsed_bytes.ok()) return parsed_bytes.status();
  int64_t wire_bytes = 0;
  for (std::string_view piece : pieces) wire_bytes += static_cast<int64_t>(piece.size());
  const bool charged = *parsed_bytes + wire_bytes > kUncharged;
  const int64_t before = charge->bytes();
  if (charged) {
    absl::Status status = charge->Set(before + *parsed_bytes + wire_bytes);
    if (!status.ok()) return status;
  }
  const bool parsed = Parse(pieces, request);
  if (charged) charge->Set(before + (parsed ? *parsed_bytes : 0)).IgnoreError();
  return parsed ? absl::OkStatus() : WhyMalformed(pieces, shape);
}

absl::Status ParseRequest(const grpc::ByteBuffer& bytes, const MessageShape& shape,
                          const RequestLimits& limits, ByteBudget::Charge* charge,
                          google::protobuf::MessageLite* request) {
  grpc::Slice slice;
  if (bytes.TrySingleSlice(&slice).ok()) {
    const std::string_view piece = Text(slice);
    return ParseRequest(absl::MakeConstSpan(&piece, 1), shape, limits, charge, request);
  }
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "",
                        "a message that cannot be decompressed");
  }
  absl::InlinedVector<std::string_view, 16> pieces;
  for (const grpc::Slice& part : slices) pieces.push_back(Text(part));
  return ParseRequest(pieces, shape, limits, charge, request);
}

absl::Status SerializeResponse(const google::protobuf::MessageLite& response,
                               grpc::ByteBuffer* bytes) {
  const size_t size = response.ByteSizeLong();
  // gRPC treats a message that it cannot serialize as an internal defect, and ends the process.
  constexpr auto kMost = static_cast<size_t>(std::numeric_limits<int>::max());
  bool own = false;
  if (size <= kMost &&
      grpc::GenericSerialize<grpc::ProtoBufferWriter, google::protobuf::MessageLite>(response,
                                                                                     bytes, &own)
          .ok()) {
    return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_SIZE_LIMIT,
                   absl::StrCat("the answer is larger than a message may be: ", size,
                                " bytes; ask for fewer at once"));
}

}  // namespace stride::api
