#include "server/transfer/fetch_encoder.h"

#include <string>
#include <vector>

#include <grpcpp/support/slice.h>

#include "gtest/gtest.h"
#include "stride/v1/array_service.pb.h"

namespace stride::transfer {
namespace {

std::vector<grpc::Slice> Slices(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  return slices;
}

v1::FetchArrayResponse Parse(const grpc::ByteBuffer& buffer) {
  std::string bytes;
  for (const grpc::Slice& slice : Slices(buffer)) bytes.append(slice.begin(), slice.end());
  v1::FetchArrayResponse response;
  EXPECT_TRUE(response.ParseFromString(bytes));
  return response;
}

TEST(FetchEncoderTest, DescriptionIsAnOrdinaryMessage) {
  v1::Array array;
  array.set_name("sessions/s/arrays/1");
  EXPECT_EQ(Parse(EncodeFetchArray(array)).array().name(), "sessions/s/arrays/1");
}

TEST(FetchEncoderTest, PayloadIsBorrowedAtEveryFrameSize) {
  for (size_t size : {0u, 1u, 127u, 128u, 16383u, 16384u, 1u << 20, 4u << 20}) {
    std::string bytes(size, 'q');
    auto lease = std::make_shared<int>(0);
    grpc::ByteBuffer buffer = EncodeFetchData(bytes, lease);
    EXPECT_EQ(Parse(buffer).data(), bytes);
    if (size > 0) {
      EXPECT_EQ(reinterpret_cast<const char*>(Slices(buffer)[1].begin()), bytes.data());
    }
  }
}

TEST(FetchEncoderTest, LeaseEndsWithTheLastReference) {
  std::string bytes = "payload";
  auto lease = std::make_shared<int>(0);
  grpc::ByteBuffer buffer = EncodeFetchData(bytes, lease);
  EXPECT_EQ(lease.use_count(), 2);
  grpc::ByteBuffer copy = buffer;
  buffer.Clear();
  EXPECT_EQ(lease.use_count(), 2);
  copy.Clear();
  EXPECT_EQ(lease.use_count(), 1);
}

}  // namespace
}  // namespace stride::transfer
