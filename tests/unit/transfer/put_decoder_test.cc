#include "server/transfer/put_decoder.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "server/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size);

namespace stride::transfer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::PutArrayRequest HeaderMessage() {
  v1::PutArrayRequest request;
  request.mutable_header()->set_parent("sessions/s");
  request.mutable_header()->set_array_id("7");
  request.mutable_header()->mutable_spec()->set_data_type(v1::DATA_TYPE_FLOAT32);
  request.mutable_header()->mutable_spec()->add_shape(3);
  return request;
}

std::string DataMessage(std::string data) {
  v1::PutArrayRequest request;
  request.set_data(std::move(data));
  return request.SerializeAsString();
}

absl::StatusOr<PutMessage> Decode(std::string_view bytes) { return DecodePutMessage({&bytes, 1}); }

std::string FieldOf(const absl::Status& status) {
  google::rpc::BadRequest request;
  auto payload = status.GetPayload("type.googleapis.com/google.rpc.BadRequest");
  if (!payload.has_value() || !request.ParseFromString(std::string(*payload))) return "(none)";
  return request.field_violations(0).field();
}

std::string ChunkMessage(int64_t offset, int64_t size) {
  v1::PutArrayRequest request;
  request.mutable_chunk()->set_offset(offset);
  request.mutable_chunk()->set_size(size);
  return request.SerializeAsString();
}

absl::StatusOr<PutMessage> Next(PutDecoder& decoder, std::string_view bytes) {
  return decoder.Next({&bytes, 1});
}

TEST(PutDecoderTest, ChunksReplaceDataWithARegion) {
  v1::PutArrayRequest header = HeaderMessage();
  header.mutable_header()->set_region("sessions/s/regions/r");
  PutDecoder decoder;
  ASSERT_TRUE(Next(decoder, header.SerializeAsString()).ok());
  auto message = Next(decoder, ChunkMessage(4096, 77));
  ASSERT_TRUE(message.ok()) << message.status();
  ASSERT_TRUE(message->chunk.has_value());
  EXPECT_EQ(message->chunk->offset(), 4096);
  EXPECT_EQ(message->chunk->size(), 77);
  EXPECT_EQ(FieldOf(Next(decoder, DataMessage("abc")).status()), "data");
  EXPECT_EQ(FieldOf(Next(decoder, ChunkMessage(1, 2) + DataMessage("abc")).status()), "data");
  EXPECT_EQ(FieldOf(Next(decoder, "").status()), "chunk");
}

TEST(PutDecoderTest, ChunksAreRefusedWithoutRegionOrWithHeader) {
  PutDecoder decoder;
  ASSERT_TRUE(Next(decoder, HeaderMessage().SerializeAsString()).ok());
  EXPECT_EQ(FieldOf(Next(decoder, ChunkMessage(0, 1)).status()), "chunk");
  EXPECT_EQ(FieldOf(Next(decoder, DataMessage("abc") + ChunkMessage(0, 1)).status()), "chunk");
  v1::PutArrayRequest header = HeaderMessage();
  header.mutable_header()->set_region("sessions/s/regions/r");
  PutDecoder other;
  EXPECT_EQ(FieldOf(Next(other, header.SerializeAsString() + ChunkMessage(0, 1)).status()),
            "chunk");
}

TEST(PutDecoderTest, DataIsBorrowedFromTheSlices) {
  std::string bytes = DataMessage("abcdefgh");
  std::vector<std::string_view> slices = {std::string_view(bytes).substr(0, 1),
                                          std::string_view(bytes).substr(1, 4), std::string_view(),
                                          std::string_view(bytes).substr(5)};
  auto message = DecodePutMessage(slices);
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_THAT(message->data, ElementsAre("abc", "defgh"));
  EXPECT_EQ(message->data[0].data(), bytes.data() + 2);
  EXPECT_EQ(message->data_bytes, 8);
}

TEST(PutDecoderTest, UnknownFieldsAreRefusedByTheirNumber) {
  // A varint, a fixed64, bytes and a fixed32, in the message and in its header.
  const std::string unknown[] = {"\x20\x01", std::string("\x29\0\0\0\0\0\0\0\0", 9), "\x32\x01x",
                                 std::string("\x3d\0\0\0\0", 5)};
  int number = 4;
  for (const std::string& field : unknown) {
    const absl::Status status = Decode(field + DataMessage("d")).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_EQ(FieldOf(status), std::to_string(number++));
  }
  auto header = HeaderMessage().header().SerializeAsString() + "\x98\x06\x01";
  const absl::Status status =
      Decode("\x0a" + std::string(1, static_cast<char>(header.size())) + header).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_EQ(FieldOf(status), "header.99");
}

TEST(PutDecoderTest, GroupIsMalformed) {
  EXPECT_EQ(Decode("\x33\x34" + DataMessage("d")).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(PutDecoderTest, HeaderDurationIsChecked) {
  auto message = HeaderMessage();
  message.mutable_header()->mutable_ttl()->set_seconds(1);
  message.mutable_header()->mutable_ttl()->set_nanos(-5);
  EXPECT_EQ(FieldOf(Decode(message.SerializeAsString()).status()), "header.ttl");
}

TEST(PutDecoderTest, OrderOfMessagesIsChecked) {
  PutDecoder decoder;
  std::string header = HeaderMessage().SerializeAsString();
  std::string_view first = header;
  auto message = decoder.Next({&first, 1});
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->header->spec().shape(0), 3);
  std::string data = DataMessage("x");
  std::string_view second = data;
  EXPECT_TRUE(decoder.Next({&second, 1}).ok());
  EXPECT_TRUE(decoder.Next({}).ok()) << "an empty message carries nothing and harms nothing";
  EXPECT_EQ(FieldOf(decoder.Next({&first, 1}).status()), "header");
}

struct BadCase {
  const char* name;
  std::string bytes;
  const char* field;
  v1::ErrorReason reason;
};

class BadFirstMessageTest : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadFirstMessageTest, IsRefusedByField) {
  PutDecoder decoder;
  std::string_view bytes = GetParam().bytes;
  absl::Status status = decoder.Next({&bytes, 1}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(status), GetParam().field);
  EXPECT_EQ(ReasonOf(status), GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadFirstMessageTest,
    ::testing::Values(
        BadCase{"Empty", "", "header", v1::ERROR_REASON_INVALID_FIELD},
        BadCase{"DataFirst", DataMessage("x"), "header", v1::ERROR_REASON_INVALID_FIELD},
        BadCase{"DataBesideHeader", HeaderMessage().SerializeAsString() + DataMessage("x"), "data",
                v1::ERROR_REASON_INVALID_FIELD},
        BadCase{"HeaderCutShort", HeaderMessage().SerializeAsString().substr(0, 5), "header",
                v1::ERROR_REASON_INVALID_FIELD},
        BadCase{"HeaderGarbage", std::string("\x0a\x02\xff\xff", 4), "header",
                v1::ERROR_REASON_INVALID_FIELD},
        BadCase{"HeaderTooLarge", std::string("\x0a\x80\x80\x08", 4) + std::string(1 << 17, '\0'),
                "header", v1::ERROR_REASON_SIZE_LIMIT},
        BadCase{"DataTooLarge", DataMessage(std::string((4 << 20) + 1, 'x')), "data",
                v1::ERROR_REASON_SIZE_LIMIT},
        BadCase{"DataCutShort", DataMessage("abcdef").substr(0, 5), "data",
                v1::ERROR_REASON_INVALID_FIELD},
        BadCase{"LengthOfElevenBytes", "\x12" + std::string(11, '\xff'), "data",
                v1::ERROR_REASON_INVALID_FIELD},
        BadCase{"FieldZero", std::string("\0", 1), "", v1::ERROR_REASON_INVALID_FIELD},
        BadCase{"GroupNeverEnds", "\x33\x08\x01", "", v1::ERROR_REASON_INVALID_FIELD},
        BadCase{"GroupsTooDeep", std::string(1000, '\x33'), "", v1::ERROR_REASON_INVALID_FIELD}),
    [](const auto& info) { return info.param.name; });

TEST(PutDecoderTest, LargestMessageIsAccepted) {
  std::string bytes = DataMessage(std::string(4 << 20, 'x'));
  auto message = Decode(bytes);
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->data_bytes, PutDecoder::kMaxDataBytes);
}

void RunFuzz(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

TEST(PutDecoderFuzzTest, CorpusAgreesWithProtobuf) {
  int num_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(STRIDE_CORPUS)) {
    std::ifstream file(entry.path(), std::ios::binary);
    RunFuzz(std::string(std::istreambuf_iterator<char>(file), {}));
    ++num_files;
  }
  EXPECT_GE(num_files, 8);
}

TEST(PutDecoderFuzzTest, MutationsAgreeWithProtobuf) {
  std::mt19937 random(20);
  std::vector<std::string> seeds = {
      HeaderMessage().SerializeAsString(), DataMessage("some data"),
      HeaderMessage().SerializeAsString() + DataMessage("x") + DataMessage("y"),
      std::string("\x18\x96\x01\x33\x0a\x01\x61\x34\x12\x02hi", 12)};
  for (int round = 0; round < 100000; ++round) {
    std::string input(1, static_cast<char>(random()));
    input += seeds[random() % seeds.size()];
    if (random() % 4 == 0) input += seeds[random() % seeds.size()];
    for (int flips = random() % 4; flips > 0; --flips)
      input[1 + random() % (input.size() - 1)] = static_cast<char>(random());
    if (random() % 8 == 0) input.resize(1 + random() % input.size());
    RunFuzz(input);
  }
}

}  // namespace
}  // namespace stride::transfer
