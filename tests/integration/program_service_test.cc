// Programs through a daemon: registered once, replayed with new inputs.

#include <google/protobuf/text_format.h>
#include <signal.h>

#include <cmath>
#include <cstring>

#include "gmock/gmock.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/program_service.pb.h"
#include "stride/v1/session_service.pb.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/rpc.h"

namespace stride::testing {
namespace {

using ::testing::ElementsAre;

constexpr int kInvalidArgument = 3, kNotFound = 5;

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

v1::InlineArray Floats(const std::vector<double>& values) {
  v1::InlineArray array;
  array.mutable_spec()->set_data_type(v1::DATA_TYPE_FLOAT64);
  array.mutable_spec()->add_shape(static_cast<int64_t>(values.size()));
  array.mutable_data()->assign(reinterpret_cast<const char*>(values.data()), values.size() * 8);
  return array;
}

// (x + y)**2 and its sum; x + y and the square become one loop.
constexpr char kProgram[] = R"(
  inputs { handle: 1 spec { data_type: DATA_TYPE_FLOAT64 shape: 3 } }
  inputs { handle: 2 spec { data_type: DATA_TYPE_FLOAT64 shape: 3 } }
  operations { ufunc { function: 'add' inputs { handle: 1 } inputs { handle: 2 } } outputs { handle: 3 } }
  operations { ufunc { function: 'square' inputs { handle: 3 } } outputs { handle: 4 } }
  operations { reduction { function: FUNCTION_SUM input { handle: 4 } } outputs { handle: 5 } }
  outputs: 4 outputs: 5)";

class Caller {
 public:
  explicit Caller(const std::string& address) : rpc_(address) {}

  Outcome Create(const std::string& id, const std::string& program) {
    auto request = Parse<v1::CreateProgramRequest>("program { " + program + " }");
    request.set_program_id(id);
    return rpc_.Call("ProgramService/CreateProgram", request);
  }
  v1::RunRequest CallOf(const std::string& id, const std::vector<std::vector<double>>& inputs,
                        int num_outputs) {
    v1::RunRequest request;
    auto* call = request.mutable_operation()->mutable_program_call();
    call->set_program("tenants/default/programs/" + id);
    for (const auto& input : inputs) *call->add_inputs()->mutable_inline_array() = Floats(input);
    for (int i = 0; i < num_outputs; ++i)
      request.mutable_operation()->add_outputs()->set_inline_result(true);
    return request;
  }
  Outcome Run(const v1::RunRequest& request) { return rpc_.Call("ComputeService/Run", request); }
  std::vector<std::vector<double>> Values(const v1::RunRequest& request) {
    const Outcome outcome = Run(request);
    EXPECT_TRUE(outcome.ok()) << outcome.ToString();
    std::vector<std::vector<double>> values;
    v1::RunResponse response;
    if (!outcome.ok() || !response.ParseFromString(outcome.replies.at(0))) return values;
    for (const auto& result : response.results()) {
      const std::string& bytes = result.inline_array().data();
      values.emplace_back(bytes.size() / 8);
      std::memcpy(values.back().data(), bytes.data(), bytes.size() / 8 * 8);
    }
    return values;
  }
  const Rpc& rpc() const { return rpc_; }

 private:
  Rpc rpc_;
};

TEST(ProgramTest, ReplaysWithNewInputs) {
  Daemon daemon({"--supervise"});
  Caller caller(daemon.address());
  const Outcome created = caller.Create("squares", kProgram);
  ASSERT_TRUE(created.ok()) << created.ToString();
  v1::CreateProgramResponse response;
  ASSERT_TRUE(response.ParseFromString(created.replies.at(0)));
  EXPECT_EQ(response.program().name(), "tenants/default/programs/squares");
  EXPECT_EQ(response.num_tasks(), 1);  // of two steps
  ASSERT_EQ(response.results_size(), 2);
  EXPECT_EQ(response.results(0).shape(0), 3);
  for (double k : {1, 2, 3}) {
    const auto values = caller.Values(caller.CallOf("squares", {{1, 2, 3}, {k, k, k}}, 2));
    ASSERT_EQ(values.size(), 2u);
    EXPECT_THAT(values[0], ElementsAre((1 + k) * (1 + k), (2 + k) * (2 + k), (3 + k) * (3 + k)));
    EXPECT_THAT(values[1], ElementsAre(values[0][0] + values[0][1] + values[0][2]));
  }
  // Another shape than was declared.
  EXPECT_THAT(caller.Values(caller.CallOf("squares", {{1, 2}, {0}}, 2)).at(0), ElementsAre(1, 4));
  const Outcome wrong = caller.Run(caller.CallOf("squares", {{1, 2}, {1, 2, 3}}, 2));
  EXPECT_EQ(wrong.code, kInvalidArgument) << wrong.ToString();
  ASSERT_EQ(wrong.violations.size(), 1u);
  EXPECT_EQ(wrong.violations[0].field, "operation.program_call.program.operations[0].ufunc.inputs");
  EXPECT_EQ(caller.Run(caller.CallOf("squares", {{1, 2}}, 2)).code, kInvalidArgument);
  EXPECT_EQ(caller.Run(caller.CallOf("squares", {{1, 2}, {1, 2}}, 1)).code, kInvalidArgument);
  EXPECT_EQ(caller.Run(caller.CallOf("none", {{1, 2}, {1, 2}}, 2)).code, kNotFound);
  // It outlives the daemon.
  const int times = daemon.TimesReady();
  kill(daemon.ServingPid(), SIGKILL);
  ASSERT_TRUE(daemon.WaitReady(times + 1, std::chrono::seconds(30))) << daemon.Log();
  Caller again(daemon.address());
  EXPECT_THAT(again.Values(again.CallOf("squares", {{1, 2, 3}, {1, 1, 1}}, 2)).at(1),
              ElementsAre(29));
  v1::DeleteProgramRequest gone;
  gone.set_name("tenants/default/programs/squares");
  EXPECT_TRUE(again.rpc().Call("ProgramService/DeleteProgram", gone).ok());
  EXPECT_EQ(again.Run(again.CallOf("squares", {{1}, {1}}, 2)).code, kNotFound);
}

TEST(ProgramTest, ResultsGoToHandlesAndExistingArrays) {
  Daemon daemon;
  Caller caller(daemon.address());
  ASSERT_TRUE(caller.Create("squares", kProgram).ok());
  v1::CreateSessionRequest session;
  session.set_session_id("s");
  ASSERT_TRUE(caller.rpc().Call("SessionService/CreateSession", session).ok());
  // One command makes both; the next call writes the first again.
  v1::ExecuteRequest request;
  request.set_session("sessions/s");
  for (int round = 0; round < 2; ++round) {
    auto* command = request.add_commands();
    command->set_id(round + 1);
    *command->mutable_operation() =
        caller.CallOf("squares", {{1, 2, 3}, {round + 0.0, 0, 0}}, 0).operation();
    auto* first = command->mutable_operation()->add_outputs();
    first->set_handle(10);
    first->set_existing(round == 1);
    command->mutable_operation()->add_outputs()->set_handle(11 + round);
    command->set_wait(true);
  }
  for (uint64_t handle : {10, 11, 12}) {
    auto* command = request.add_commands();
    command->set_id(handle);
    command->mutable_fetch()->set_handle(handle);
  }
  const Outcome outcome = caller.rpc().Call("ComputeService/Execute", request);
  ASSERT_TRUE(outcome.ok()) << outcome.ToString();
  std::map<uint64_t, std::vector<double>> values;
  for (const std::string& reply : outcome.replies) {
    v1::ExecuteResponse response;
    ASSERT_TRUE(response.ParseFromString(reply));
    for (const auto& result : response.results()) {
      EXPECT_EQ(result.status().code(), 0) << result.ShortDebugString();
      if (result.id() < 10 || result.results().empty()) continue;
      const std::string& bytes = result.results(0).inline_array().data();
      values[result.id()].resize(bytes.size() / 8);
      std::memcpy(values[result.id()].data(), bytes.data(), bytes.size());
    }
  }
  EXPECT_THAT(values[10], ElementsAre(4, 4, 9));
  EXPECT_THAT(values[11], ElementsAre(14));
  EXPECT_THAT(values[12], ElementsAre(17));
}

// JAX's vmap: a function of one vector, over a batch of them.
TEST(ProgramTest, ABatchIsOneProgram) {
  Daemon daemon;
  Caller caller(daemon.address());
  // The sum of squares of a matrix times a vector, less the vector's greatest element.
  const std::string operations = R"(
    inputs { handle: 1 } inputs { handle: 2 } outputs: 6 outputs: 3
    operations { matmul { left { handle: 1 } right { handle: 2 } } outputs { handle: 3 } }
    operations { reduction { function: FUNCTION_MAX input { handle: 2 } } outputs { handle: 4 } }
    operations { expression { text: 'x * x - m' inputs { key: 'x' value { handle: 3 } }
      inputs { key: 'm' value { handle: 4 } } } outputs { handle: 5 } }
    operations { reduction { function: FUNCTION_SUM input { handle: 5 } } outputs { handle: 6 } })";
  ASSERT_TRUE(caller.Create("one", operations).ok());
  const Outcome created = caller.Create(
      "all", operations + "batching { inputs {} inputs { axis: 1 } outputs: 0 outputs: 1 }");
  ASSERT_TRUE(created.ok()) << created.ToString();
  const std::vector<double> matrix = {1, -2, 3, 4, 0.5, 6};  // 3 x 2
  const std::vector<std::vector<double>> vectors = {{1, 2}, {-3, 4}, {0, 0.5}, {7, -7}};
  auto call = [&](const char* id, const std::vector<double>& vector, std::vector<int64_t> shape) {
    v1::RunRequest request = caller.CallOf(id, {matrix, vector}, 2);
    auto* inputs = request.mutable_operation()->mutable_program_call()->mutable_inputs();
    auto* spec = inputs->Mutable(0)->mutable_inline_array()->mutable_spec();
    spec->clear_shape();
    spec->add_shape(3);
    spec->add_shape(2);
    spec = inputs->Mutable(1)->mutable_inline_array()->mutable_spec();
    spec->mutable_shape()->Assign(shape.begin(), shape.end());
    return caller.Values(request);
  };
  std::vector<double> together(8);
  for (size_t b = 0; b < 4; ++b) {
    for (size_t k = 0; k < 2; ++k) together[k * 4 + b] = vectors[b][k];
  }
  const auto all = call("all", together, {2, 4});
  ASSERT_EQ(all.size(), 2u);
  ASSERT_EQ(all[0].size(), 4u);
  ASSERT_EQ(all[1].size(), 12u);
  for (size_t b = 0; b < 4; ++b) {
    const auto one = call("one", vectors[b], {2});
    ASSERT_EQ(one.size(), 2u);
    EXPECT_DOUBLE_EQ(all[0][b], one[0].at(0)) << b;
    for (size_t i = 0; i < 3; ++i)
      EXPECT_DOUBLE_EQ(all[1][i * 4 + b], one[1].at(i)) << b << " " << i;
  }
  // What has no rule says so.
  const Outcome no_rule = caller.Create(
      "none",
      "inputs { handle: 1 spec { data_type: DATA_TYPE_FLOAT64 shape: 4 shape: 3 } } outputs: 2 "
      "operations { nonzero { input { handle: 1 } count: 1 } outputs { handle: 2 } } "
      "batching { inputs { axis: 0 } }");
  EXPECT_EQ(no_rule.code, 12) << no_rule.ToString();
  EXPECT_EQ(no_rule.metadata.at("feature"), "batching of nonzero");
}

}  // namespace
}  // namespace stride::testing
