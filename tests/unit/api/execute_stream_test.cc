// ComputeService.Execute through a real server.

#include "server/api/execute_stream.h"

#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "stride/v1/compute_service.grpc.pb.h"
#include "tests/support/await.h"
#include "tests/support/test_server.h"

namespace stride::api {
namespace {

using stride::testing::DetailsOf;
using stride::testing::TestServer;

// Commands with ids 1, 2, ... on the session `sessions/s`.
class Commands {
 public:
  Commands() { request_.set_session("sessions/s"); }

  Commands& Store(uint64_t handle, const std::string& bytes, bool wait = false) {
    v1::Command* command = Add();
    command->mutable_operation()->mutable_copy()->mutable_input()->mutable_inline_array()->set_data(
        bytes);
    command->mutable_operation()->add_outputs()->set_handle(handle);
    command->set_wait(wait);
    return *this;
  }
  Commands& Copy(uint64_t from, uint64_t to) {
    v1::Command* command = Add();
    command->mutable_operation()->mutable_copy()->mutable_input()->set_handle(from);
    command->mutable_operation()->add_outputs()->set_handle(to);
    return *this;
  }
  // A copy whose bytes return with its command result.
  Commands& Return(uint64_t from) {
    v1::Command* command = Add();
    command->mutable_operation()->mutable_copy()->mutable_input()->set_handle(from);
    command->mutable_operation()->add_outputs()->set_inline_result(true);
    return *this;
  }
  Commands& Fetch(uint64_t handle) {
    Add()->mutable_fetch()->set_handle(handle);
    return *this;
  }
  Commands& Release(uint64_t handle) {
    Add()->mutable_release()->add_handles(handle);
    return *this;
  }
  Commands& Synchronize() {
    Add()->mutable_synchronize();
    return *this;
  }
  v1::Command* Add() {
    v1::Command* command = request_.add_commands();
    command->set_id(static_cast<uint64_t>(request_.commands_size()));
    return command;
  }
  v1::ExecuteRequest& request() { return request_; }

 private:
  v1::ExecuteRequest request_;
};

class ExecuteTest : public ::testing::Test {
 protected:
  using Stream = grpc::ClientReaderWriter<v1::ExecuteRequest, v1::ExecuteResponse>;

  void TearDown() override { server_.engine().operations().LetGo(); }

  // The next `count` results, in order of arrival.
  std::vector<v1::CommandResult> Read(Stream& stream, size_t count) {
    std::vector<v1::CommandResult> results;
    v1::ExecuteResponse response;
    while (results.size() < count && stream.Read(&response)) {
      results.insert(results.end(), response.results().begin(), response.results().end());
    }
    EXPECT_EQ(results.size(), count);
    results.resize(count);
    return results;
  }

  std::vector<v1::CommandResult> RunAll(Commands& commands) {
    grpc::ClientContext context;
    auto stream = stub_->Execute(&context);
    EXPECT_TRUE(stream->Write(commands.request()));
    stream->WritesDone();
    auto results = Read(*stream, commands.request().commands_size());
    grpc::Status status = stream->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i].id(), i + 1);
    return results;
  }

  TestServer server_;
  std::unique_ptr<v1::ComputeService::Stub> stub_ = v1::ComputeService::NewStub(server_.Connect());
};

TEST_F(ExecuteTest, ChainTakesOneRoundTrip) {
  Commands commands;
  commands.Store(1, "abc").Copy(1, 2).Fetch(2).Release(1).Fetch(1);
  auto results = RunAll(commands);
  EXPECT_EQ(results[0].results(0).array().size_bytes(), 3);
  EXPECT_EQ(results[0].results(0).array().name(), "sessions/s/arrays/1");
  EXPECT_EQ(results[2].results(0).inline_array().data(), "abc");
  EXPECT_EQ(results[3].status().code(), 0);
  EXPECT_EQ(results[4].status().code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(DetailsOf(results[4].status()).info.reason(), "ARRAY_NOT_FOUND");
  EXPECT_EQ(server_.engine().accounts().Describe({"default"}).download_bytes(), 3);
}

TEST_F(ExecuteTest, CommandErrorDoesNotStopOthers) {
  Commands commands;
  commands.Copy(404, 1).Store(2, "x");
  commands.Add();
  commands.Add()->mutable_operation();
  commands.Return(404);
  v1::Command* timeout = commands.Store(3, "y").request().mutable_commands(5);
  timeout->mutable_timeout()->set_seconds(-1);
  commands.Fetch(2);
  auto results = RunAll(commands);
  EXPECT_EQ(results[0].status().code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(results[1].status().code(), 0);
  EXPECT_EQ(DetailsOf(results[2].status()).field(), "kind");
  EXPECT_EQ(DetailsOf(results[3].status()).field(), "operation.kind");
  EXPECT_EQ(results[4].status().code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(DetailsOf(results[5].status()).field(), "timeout");
  EXPECT_EQ(results[6].results(0).inline_array().data(), "x");
}

TEST_F(ExecuteTest, WaitDelaysResultsButNotAcceptance) {
  server_.engine().operations().Hold();
  Commands commands;
  commands.Store(1, "a").Store(2, "b", true).Store(3, "c").Store(4, "d");
  grpc::ClientContext context;
  auto stream = stub_->Execute(&context);
  ASSERT_TRUE(stream->Write(commands.request()));
  auto first = Read(*stream, 1);
  EXPECT_EQ(first[0].id(), 1u);
  EXPECT_EQ(first[0].results(0).array().state(), v1::Array::STATE_PENDING);
  AWAIT(server_.engine().operations().num_submitted() >= 4);
  server_.engine().operations().LetGo();
  auto rest = Read(*stream, 3);
  EXPECT_EQ(rest[0].id(), 2u);
  EXPECT_TRUE(rest[0].has_timeline());
  EXPECT_EQ(rest[0].results(0).array().state(), v1::Array::STATE_READY);
  EXPECT_EQ(rest[1].id(), 3u);
  EXPECT_FALSE(rest[1].has_timeline());
  EXPECT_EQ(rest[2].id(), 4u);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ExecuteTest, InlineResultArrivesWithItsCommandResult) {
  for (bool at_once : {true, false}) {
    SCOPED_TRACE(at_once);
    server_.engine().operations().SetReadsAtOnce(at_once);
    server_.engine().operations().Hold();
    const int before = server_.engine().operations().num_submitted();
    Commands commands;
    commands.Store(1, "a").Return(1).Store(2, "b").Release(1).Release(2);
    grpc::ClientContext context;
    auto stream = stub_->Execute(&context);
    ASSERT_TRUE(stream->Write(commands.request()));
    auto first = Read(*stream, 1);
    EXPECT_EQ(first[0].id(), 1u);
    AWAIT(server_.engine().operations().num_submitted() >= before + 3);
    server_.engine().operations().LetGo();
    auto rest = Read(*stream, 4);
    EXPECT_EQ(rest[0].id(), 2u);
    EXPECT_FALSE(rest[0].has_timeline());
    ASSERT_EQ(rest[0].results_size(), 1);
    EXPECT_EQ(rest[0].results(0).inline_array().data(), "a");
    EXPECT_EQ(rest[0].results(0).array().state(), v1::Array::STATE_READY);
    EXPECT_FALSE(rest[1].results(0).has_inline_array());
    stream->WritesDone();
    EXPECT_TRUE(stream->Finish().ok());
  }
}

TEST_F(ExecuteTest, OversizedInlineResultIsCancelled) {
  server_.engine().operations().Hold();
  Commands commands;
  commands.Store(1, std::string(3 << 20, 'x')).Copy(1, 2);
  v1::Operation& operation = *commands.Add()->mutable_operation();
  operation.mutable_creation()->mutable_fill()->mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
  operation.mutable_creation()->mutable_fill()->mutable_spec()->add_shape(5 << 20);
  operation.add_outputs()->set_inline_result(true);
  auto results = RunAll(commands);
  EXPECT_EQ(results[1].status().code(), 0);
  EXPECT_EQ(DetailsOf(results[2].status()).field(), "operation.outputs");
  EXPECT_EQ(DetailsOf(results[2].status()).info.reason(), "SIZE_LIMIT");
  EXPECT_EQ(server_.engine().operations().num_cancelled(), 1);
}

TEST_F(ExecuteTest, InlineResultOfFailedWorkIsItsError) {
  server_.engine().operations().FailNextWork(MakeError(
      absl::StatusCode::kOutOfRange, v1::ERROR_REASON_DATA_OUT_OF_RANGE, "beyond the end"));
  Commands commands;
  v1::Command* failing = commands.Add();
  failing->mutable_operation()->mutable_copy()->mutable_input()->mutable_inline_array()->set_data(
      "a");
  failing->mutable_operation()->add_outputs()->set_inline_result(true);
  commands.Synchronize();
  auto results = RunAll(commands);
  EXPECT_EQ(results[0].status().code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(results[1].status().code(), grpc::StatusCode::OUT_OF_RANGE);
}

// A command that ends soon shares one message with earlier results.
TEST_F(ExecuteTest, PromptResultsShareOneMessage) {
  grpc::ClientContext context;
  auto stream = stub_->Execute(&context);
  for (int turn = 0, together = 0; together == 0; ++turn) {
    ASSERT_LT(turn, 100) << "on no machine is each of them late";
    Commands commands;
    commands.Store(1, "a").Store(2, "b", true).Fetch(1).Synchronize().Release(1).Release(2);
    ASSERT_TRUE(stream->Write(commands.request()));
    v1::ExecuteResponse response;
    int results = 0;
    for (int messages = 1; results < 6; ++messages) {
      ASSERT_TRUE(stream->Read(&response));
      results += response.results_size();
      together += messages == 1 && results == 6;
    }
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ExecuteTest, SynchronizeReportsFirstError) {
  server_.engine().operations().Hold();
  grpc::ClientContext context;
  auto stream = stub_->Execute(&context);
  Commands good;
  good.Store(1, "a").Synchronize();
  ASSERT_TRUE(stream->Write(good.request()));
  Read(*stream, 1);
  server_.engine().operations().LetGo();
  EXPECT_EQ(Read(*stream, 1)[0].status().code(), 0);
  server_.engine().operations().FailNextWork(
      MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_KERNEL_FAULT, "first"));
  Commands bad;
  bad.Store(2, "b").Copy(404, 5).Synchronize();
  ASSERT_TRUE(stream->Write(bad.request()));
  auto results = Read(*stream, 3);
  EXPECT_EQ(results[2].status().message(), "first");
  EXPECT_EQ(DetailsOf(results[2].status()).info.reason(), "KERNEL_FAULT");
  Commands after;
  after.Synchronize().Store(6, "c").Synchronize();
  ASSERT_TRUE(stream->Write(after.request()));
  for (const auto& result : Read(*stream, 3)) EXPECT_EQ(result.status().code(), 0) << "told once";
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

// The release is accepted before the fetch is done. It must not take the array from the fetch, and
// the fetch must not delay later commands.
TEST_F(ExecuteTest, FetchIsBoundAtAcceptance) {
  server_.engine().operations().Hold();
  Commands commands;
  commands.Store(1, "kept").Fetch(1).Release(1).Store(1, "again");
  grpc::ClientContext context;
  auto stream = stub_->Execute(&context);
  ASSERT_TRUE(stream->Write(commands.request()));
  Read(*stream, 1);
  AWAIT(server_.engine().operations().num_submitted() >= 2);
  EXPECT_EQ(server_.engine().arrays().BytesOf("sessions/s/arrays/1"), "again");
  server_.engine().operations().LetGo();
  auto rest = Read(*stream, 3);
  EXPECT_EQ(rest[0].results(0).inline_array().data(), "kept");
  EXPECT_EQ(rest[2].status().code(), 0);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ExecuteTest, UnansweredCommandsAreBounded) {
  server_.engine().operations().Hold();
  grpc::ClientContext context;
  auto stream = stub_->Execute(&context);
  Commands first;
  first.Store(1, "blocks", true);
  ASSERT_TRUE(stream->Write(first.request()));
  constexpr int kMessages = 13;
  std::thread writer([&] {
    Commands many;
    for (int i = 0; i < 1000; ++i) many.Store(2, "x");
    for (int i = 0; i < kMessages; ++i) stream->Write(many.request());
    stream->WritesDone();
  });
  const int bound = static_cast<int>(ExecuteStream::kMaxOutstanding);
  AWAIT(server_.engine().operations().num_submitted() >= bound);
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_LE(server_.engine().operations().num_submitted(), bound + 1);
  server_.engine().operations().LetGo();
  Read(*stream, 1 + kMessages * 1000);
  writer.join();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ExecuteTest, BrokenStreamCancelsNoWork) {
  server_.engine().operations().Hold();
  {
    grpc::ClientContext context;
    auto stream = stub_->Execute(&context);
    Commands commands;
    commands.Store(1, "a").Store(2, "b", true).Fetch(1);
    ASSERT_TRUE(stream->Write(commands.request()));
    AWAIT(server_.engine().operations().num_submitted() >= 2);
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  while (server_.front().counters().Snapshot()["ComputeService/Execute"].handled[1] == 0) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(server_.engine().operations().num_cancelled(), 0);
}

struct StreamErrorCase {
  const char* name;
  std::vector<v1::ExecuteRequest> requests;
  grpc::StatusCode code;
  const char* field;
};

class StreamErrorTest : public ExecuteTest,
                        public ::testing::WithParamInterface<StreamErrorCase> {};

TEST_P(StreamErrorTest, InvalidRequestEndsTheStream) {
  grpc::ClientContext context;
  auto stream = stub_->Execute(&context);
  for (const auto& request : GetParam().requests) stream->Write(request);
  stream->WritesDone();
  v1::ExecuteResponse response;
  while (stream->Read(&response)) {
  }
  grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), GetParam().code);
  EXPECT_EQ(DetailsOf(status).field(), GetParam().field);
}

v1::ExecuteRequest OfSession(const char* name, int num_commands = 0) {
  v1::ExecuteRequest request;
  request.set_session(name);
  for (int i = 0; i < num_commands; ++i) request.add_commands()->mutable_synchronize();
  return request;
}

INSTANTIATE_TEST_SUITE_P(
    All, StreamErrorTest,
    ::testing::Values(
        StreamErrorCase{"NoSession", {OfSession("sessions/none")}, grpc::StatusCode::NOT_FOUND, ""},
        StreamErrorCase{"OtherSession",
                        {OfSession("sessions/a"), OfSession("sessions/b")},
                        grpc::StatusCode::INVALID_ARGUMENT,
                        "session"},
        StreamErrorCase{"TooManyCommands",
                        {OfSession("sessions/a", 1001)},
                        grpc::StatusCode::INVALID_ARGUMENT,
                        "commands"},
        StreamErrorCase{"Nothing", {}, grpc::StatusCode::OK, ""}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace stride::api
