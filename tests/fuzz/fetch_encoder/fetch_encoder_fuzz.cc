// Protobuf reads the responses that FetchArray encodes by hand.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/support/slice.h>

#include "server/transfer/fetch_encoder.h"
#include "stride/v1/array_service.pb.h"
#include "tests/fuzz/driver/require.h"

namespace {

std::string Joined(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  stride::fuzz::Require(buffer.Dump(&slices).ok(), "slices that cannot be had");
  std::string out;
  for (const grpc::Slice& slice : slices) {
    out.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using stride::fuzz::Require;
  std::string_view data(reinterpret_cast<const char*>(bytes), size);
  auto lease = std::make_shared<int>(0);
  stride::v1::FetchArrayResponse response;
  {
    grpc::ByteBuffer encoded = stride::transfer::EncodeFetchData(data, lease);
    Require(response.ParseFromString(Joined(encoded)), "not a message");
  }
  Require(response.data() == data && !response.has_array(), "another content");
  Require(lease.use_count() == 1, "a lease that was not given back");
  stride::v1::Array array;
  if (!array.ParseFromArray(bytes, static_cast<int>(size))) return 0;
  Require(response.ParseFromString(Joined(stride::transfer::EncodeFetchArray(array))),
          "not a message");
  Require(response.has_array() && response.data().empty(), "another content");
  return 0;
}
