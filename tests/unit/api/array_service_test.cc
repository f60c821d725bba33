// PutArray and FetchArray through a real gRPC server, with clients that speak ordinary protobuf.

#include "server/api/array_service.h"

#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/steady_time.h"
#include "tests/support/await.h"
#include "tests/support/test_server.h"

namespace stride::api {
namespace {

using stride::testing::DetailsOf;
using stride::testing::TestServer;

std::string Pattern(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + (i >> 13));
  return bytes;
}

v1::PutArrayRequest Header(const std::string& id, int64_t size) {
  v1::PutArrayRequest request;
  request.mutable_header()->set_parent("sessions/s");
  request.mutable_header()->set_array_id(id);
  request.mutable_header()->mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
  request.mutable_header()->mutable_spec()->add_shape(size);
  return request;
}

v1::PutArrayRequest Data(std::string bytes) {
  v1::PutArrayRequest request;
  request.set_data(std::move(bytes));
  return request;
}

class ArrayServiceTest : public ::testing::Test {
 protected:
  grpc::Status Put(const std::vector<v1::PutArrayRequest>& messages,
                   v1::PutArrayResponse* response) {
    grpc::ClientContext context;
    auto writer = stub_->PutArray(&context, response);
    for (const auto& message : messages) {
      if (!writer->Write(message)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }

  grpc::Status Fetch(const v1::FetchArrayRequest& request, std::string* bytes,
                     int* num_messages = nullptr) {
    grpc::ClientContext context;
    auto reader = stub_->FetchArray(&context, request);
    v1::FetchArrayResponse response;
    int count = 0;
    while (reader->Read(&response)) {
      EXPECT_EQ(response.has_array(), count == 0);
      bytes->append(response.data());
      ++count;
    }
    if (num_messages != nullptr) *num_messages = count;
    return reader->Finish();
  }

  TestServer server_;
  std::unique_ptr<v1::ArrayService::Stub> stub_ = v1::ArrayService::NewStub(server_.Connect());
};

TEST_F(ArrayServiceTest, PutThenFetchReturnsTheBytes) {
  for (size_t size : {0u, 1u, 100u, 70000u, 9u << 20}) {
    std::string bytes = Pattern(size);
    std::vector<v1::PutArrayRequest> messages = {Header("1", static_cast<int64_t>(size))};
    for (size_t begin = 0; begin < size; begin += 3 << 20)
      messages.push_back(Data(bytes.substr(begin, 3 << 20)));
    v1::PutArrayResponse response;
    grpc::Status status = Put(messages, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.array().state(), v1::Array::STATE_READY);
    EXPECT_EQ(response.array().size_bytes(), static_cast<int64_t>(size));
    v1::FetchArrayRequest request;
    request.set_name(response.array().name());
    std::string back;
    int num_messages = 0;
    status = Fetch(request, &back, &num_messages);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(back, bytes);
    EXPECT_EQ(num_messages, 1 + static_cast<int>((size + (1 << 20) - 1) >> 20));
  }
  EXPECT_EQ(server_.engine().arrays().num_leases(), 0) << "every borrowed chunk was given back";
  EXPECT_EQ(server_.engine().arrays().num_open_uploads(), 0);
}

TEST_F(ArrayServiceTest, FetchRespectsChunkBytes) {
  server_.engine().arrays().PutBytes("sessions/s/arrays/1", Pattern(1000));
  v1::FetchArrayRequest request;
  request.set_name("sessions/s/arrays/1");
  request.set_chunk_bytes(300);
  std::string back;
  int num_messages = 0;
  EXPECT_TRUE(Fetch(request, &back, &num_messages).ok());
  EXPECT_EQ(num_messages, 5);
  EXPECT_EQ(back, Pattern(1000));
}

struct PutCase {
  const char* name;
  std::vector<v1::PutArrayRequest> messages;
  const char* field;
  const char* reason;
};

class PutErrorTest : public ArrayServiceTest, public ::testing::WithParamInterface<PutCase> {};

TEST_P(PutErrorTest, PutErrorNamesTheField) {
  v1::PutArrayResponse response;
  grpc::Status status = Put(GetParam().messages, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_EQ(DetailsOf(status).field(), GetParam().field);
  EXPECT_EQ(DetailsOf(status).info.reason(), GetParam().reason);
}

v1::PutArrayRequest WithoutShape() {
  v1::PutArrayRequest request = Header("1", 1);
  request.mutable_header()->mutable_spec()->clear_shape();
  return request;
}

INSTANTIATE_TEST_SUITE_P(
    All, PutErrorTest,
    ::testing::Values(
        PutCase{"Nothing", {}, "header", "INVALID_FIELD"},
        PutCase{"DataFirst", {Data("x")}, "header", "INVALID_FIELD"},
        PutCase{"TwoHeaders", {Header("1", 1), Header("1", 1)}, "header", "INVALID_FIELD"},
        PutCase{"TooFew", {Header("1", 2), Data("x")}, "data", "SIZE_MISMATCH"},
        PutCase{"TooMany", {Header("1", 2), Data("xyz")}, "data", "SIZE_MISMATCH"},
        PutCase{"TooLarge",
                {Header("1", 9 << 20), Data(std::string((4 << 20) + 1, 'x'))},
                "data",
                "SIZE_LIMIT"},
        PutCase{"EngineRefuses", {WithoutShape()}, "header.spec.shape", "INVALID_FIELD"}),
    [](const auto& info) { return info.param.name; });

TEST_F(ArrayServiceTest, FetchErrorsAreReported) {
  std::string bytes;
  v1::FetchArrayRequest request;
  request.set_name("sessions/s/arrays/404");
  grpc::Status status = Fetch(request, &bytes);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(DetailsOf(status).info.reason(), "ARRAY_NOT_FOUND");
  for (int chunk : {-1, (4 << 20) + 1}) {
    request.set_chunk_bytes(chunk);
    status = Fetch(request, &bytes);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(DetailsOf(status).field(), "chunk_bytes");
  }
}

TEST_F(ArrayServiceTest, AbandonedUploadIsDropped) {
  grpc::ClientContext context;
  v1::PutArrayResponse response;
  auto writer = stub_->PutArray(&context, &response);
  ASSERT_TRUE(writer->Write(Header("9", 4)));
  ASSERT_TRUE(writer->Write(Data("ab")));
  AWAIT(server_.engine().arrays().num_open_uploads() != 0);
  context.TryCancel();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
  AWAIT(server_.engine().arrays().num_open_uploads() == 0);
  EXPECT_EQ(server_.engine().arrays().BytesOf("sessions/s/arrays/9"), "");
}

TEST_F(ArrayServiceTest, FetchOfPendingArrayEndsAtDeadline) {
  server_.engine().operations().Hold();
  v1::Operation operation;
  operation.mutable_copy()->mutable_input()->mutable_inline_array()->set_data("late");
  operation.add_outputs()->set_handle(5);
  ASSERT_TRUE(server_.engine()
                  .operations()
                  .Submit({"default"}, "sessions/s", operation, SteadyTime::InfiniteFuture())
                  .ok());
  v1::FetchArrayRequest request;
  request.set_name("sessions/s/arrays/5");
  {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Milliseconds(120)));
    auto reader = stub_->FetchArray(&context, request);
    v1::FetchArrayResponse response;
    EXPECT_FALSE(reader->Read(&response));
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  std::thread later([&] {
    absl::SleepFor(absl::Milliseconds(150));
    server_.engine().operations().LetGo();
  });
  std::string bytes;
  EXPECT_TRUE(Fetch(request, &bytes).ok());
  EXPECT_EQ(bytes, "late");
  later.join();
}

TEST(BulkLimitTest, TooManyStreamsGetRetryDelay) {
  FrontOptions options;
  options.max_bulk_streams = 1;
  TestServer server(options);
  auto stub = v1::ArrayService::NewStub(server.Connect());
  grpc::ClientContext first_context;
  v1::PutArrayResponse first_response;
  auto first = stub->PutArray(&first_context, &first_response);
  ASSERT_TRUE(first->Write(Header("1", 1)));
  AWAIT(server.engine().arrays().num_open_uploads() != 0);
  grpc::ClientContext context;
  v1::FetchArrayRequest request;
  request.set_name("sessions/s/arrays/1");
  auto reader = stub->FetchArray(&context, request);
  v1::FetchArrayResponse response;
  EXPECT_FALSE(reader->Read(&response));
  grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(DetailsOf(status).info.reason(), "QUOTA");
  EXPECT_GT(DetailsOf(status).retry.retry_delay().nanos(), 0);
  EXPECT_EQ(context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1u);
  ASSERT_TRUE(first->Write(Data("x")));
  first->WritesDone();
  EXPECT_TRUE(first->Finish().ok());
}

}  // namespace
}  // namespace stride::api
