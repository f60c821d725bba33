#include "server/transfer/fetch_encoder.h"

#include <string>
#include <utility>

#include <grpcpp/support/slice.h>

#include "stride/v1/array_service.pb.h"

namespace stride::transfer {
namespace {

constexpr char kDataTag = (v1::FetchArrayResponse::kDataFieldNumber << 3) | 2;

std::string Framing(uint64_t size) {
  std::string out(1, kDataTag);
  for (; size >= 0x80; size >>= 7) out.push_back(static_cast<char>(size | 0x80));
  out.push_back(static_cast<char>(size));
  return out;
}

grpc::ByteBuffer Serialized(const v1::FetchArrayResponse& response) {
  grpc::Slice slice(response.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

void DropLease(void* lease) { delete static_cast<std::shared_ptr<const void>*>(lease); }

}  // namespace

grpc::ByteBuffer EncodeFetchArray(const v1::Array& array) {
  v1::FetchArrayResponse response;
  *response.mutable_array() = array;
  return Serialized(response);
}

grpc::ByteBuffer EncodeFetchChunk(int64_t offset, int64_t size) {
  v1::FetchArrayResponse response;
  response.mutable_chunk()->set_offset(offset);
  response.mutable_chunk()->set_size(size);
  return Serialized(response);
}

grpc::ByteBuffer EncodeFetchData(std::string_view bytes, std::shared_ptr<const void> lease) {
  auto* held = new std::shared_ptr<const void>(std::move(lease));
  grpc::Slice slices[] = {
      grpc::Slice(Framing(bytes.size())),
      grpc::Slice(const_cast<char*>(bytes.data()), bytes.size(), DropLease, held)};
  return grpc::ByteBuffer(slices, 2);
}

}  // namespace stride::transfer
