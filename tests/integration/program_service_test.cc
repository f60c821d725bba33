// Programs through a daemon: registered once, replayed with new inputs.

#include <google/protobuf/text_format.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <map>
#include <thread>

#include "gmock/gmock.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/job_service.pb.h"
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
  EXPECT_EQ(response.num_tasks(), 1);  // two steps
  ASSERT_EQ(response.results_size(), 2);
  EXPECT_EQ(response.results(0).shape(0), 3);
  for (double k : {1, 2, 3}) {
    const auto values = caller.Values(caller.CallOf("squares", {{1, 2, 3}, {k, k, k}}, 2));
    ASSERT_EQ(values.size(), 2u);
    EXPECT_THAT(values[0], ElementsAre((1 + k) * (1 + k), (2 + k) * (2 + k), (3 + k) * (3 + k)));
    EXPECT_THAT(values[1], ElementsAre(values[0][0] + values[0][1] + values[0][2]));
  }
  // Another shape than declared.
  EXPECT_THAT(caller.Values(caller.CallOf("squares", {{1, 2}, {0}}, 2)).at(0), ElementsAre(1, 4));
  const Outcome wrong = caller.Run(caller.CallOf("squares", {{1, 2}, {1, 2, 3}}, 2));
  EXPECT_EQ(wrong.code, kInvalidArgument) << wrong.ToString();
  ASSERT_EQ(wrong.violations.size(), 1u);
  EXPECT_EQ(wrong.violations[0].field, "operation.program_call.program.operations[0].ufunc.inputs");
  EXPECT_EQ(caller.Run(caller.CallOf("squares", {{1, 2}}, 2)).code, kInvalidArgument);
  EXPECT_EQ(caller.Run(caller.CallOf("squares", {{1, 2}, {1, 2}}, 1)).code, kInvalidArgument);
  EXPECT_EQ(caller.Run(caller.CallOf("none", {{1, 2}, {1, 2}}, 2)).code, kNotFound);
  // The program outlives the daemon.
  const int times = daemon.TimesReady();
  kill(daemon.ServingPid(), SIGKILL);
  ASSERT_TRUE(daemon.WaitReady(times + 1, std::chrono::seconds(100))) << daemon.Log();
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
  // One command creates both; the next call overwrites the first.
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
TEST(ProgramTest, BatchIsOneProgram) {
  Daemon daemon;
  Caller caller(daemon.address());
  // The sum of squares of a matrix times a vector, minus the vector's greatest element.
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
  // An operation without a batching rule is reported.
  const Outcome no_rule = caller.Create(
      "none",
      "inputs { handle: 1 spec { data_type: DATA_TYPE_FLOAT64 shape: 4 shape: 3 } } outputs: 2 "
      "operations { nonzero { input { handle: 1 } count: 1 } outputs { handle: 2 } } "
      "batching { inputs { axis: 0 } }");
  EXPECT_EQ(no_rule.code, 12) << no_rule.ToString();
  EXPECT_EQ(no_rule.metadata.at("feature"), "batching of nonzero");
}

// Each element with its own indices, targets and positions.
TEST(ProgramTest, BatchGathersScattersAndWritesInPlace) {
  Daemon daemon;
  Caller caller(daemon.address());
  const std::string operations = R"(
    inputs { handle: 1 } outputs: 3 outputs: 4 outputs: 5 outputs: 6 outputs: 7 outputs: 8 outputs: 9
    outputs: 11 outputs: 12 outputs: 13
    operations { sort { input { handle: 1 } indices: true } outputs { handle: 2 } }
    operations { gather { input { handle: 1 } indices { handle: 2 } } outputs { handle: 3 } }
    operations { creation { fill { spec { data_type: DATA_TYPE_FLOAT64 shape: 4 } } } outputs { handle: 4 } }
    operations { scatter { values { handle: 3 } indices { handle: 2 } } outputs { handle: 4 existing: true } }
    operations { ufunc { function: 'add' inputs { handle: 4 } inputs { handle: 1 } } outputs { handle: 5 } }
    operations { apply_at { function: 'subtract' values { scalar { float_value: 0.5 } } indices { handle: 2 } }
      outputs { handle: 5 existing: true } }
    operations { outer { function: 'multiply' left { handle: 1 } right { handle: 3 } } outputs { handle: 6 } }
    operations { reduction { function: FUNCTION_ARGMAX input { handle: 6 } } outputs { handle: 7 } }
    operations { gather { input { handle: 6 } indices { handle: 2 } axis: 1 } outputs { handle: 8 } }
    operations { top_k { input { handle: 6 } axis: 0 k: 2 } outputs { handle: 9 } outputs { handle: 10 } }
    operations { select { input { handle: 6 } ranks { handle: 2 } axis: 1 } outputs { handle: 11 } }
    operations { select { input { handle: 4 } ranks { handle: 2 } } outputs { handle: 12 } }
    operations { sort { input { handle: 2 } more_keys { handle: 1 } indices: true } outputs { handle: 13 } })";
  ASSERT_TRUE(caller.Create("one", operations).ok());
  const Outcome created = caller.Create("all", operations + "batching { inputs { axis: 0 } }");
  ASSERT_TRUE(created.ok()) << created.ToString();
  const std::vector<double> together = {3, -1, 2, 7, 0, 5, -4, 1, 9, 8, -7, 6};
  v1::RunRequest request = caller.CallOf("all", {together}, 10);
  auto* spec = request.mutable_operation()
                   ->mutable_program_call()
                   ->mutable_inputs(0)
                   ->mutable_inline_array()
                   ->mutable_spec();
  spec->clear_shape();
  spec->add_shape(3);
  spec->add_shape(4);
  const auto all = caller.Values(request);
  ASSERT_EQ(all.size(), 10u);
  for (size_t b = 0; b < 3; ++b) {
    const std::vector<double> row(together.begin() + b * 4, together.begin() + b * 4 + 4);
    const auto one = caller.Values(caller.CallOf("one", {row}, 10));
    ASSERT_EQ(one.size(), 10u);
    for (size_t j = 0; j < 10; ++j) {
      const size_t n = one[j].size();
      ASSERT_EQ(all[j].size(), 3 * n) << j;
      EXPECT_EQ(std::vector<double>(all[j].begin() + b * n, all[j].begin() + (b + 1) * n), one[j])
          << "output " << j << " of element " << b;
    }
    EXPECT_EQ(one[1], row) << "scattered back";
  }
}

TEST(ProgramTest, ClientRegistersAndCallsPrograms) {
  Daemon daemon;
  Client client = daemon.Connect();
  ProgramSpec spec{.id = "norm",
                   .inputs = {{.handle = 1, .spec = ArraySpec{DataType::kFloat64, {3}}}}};
  spec.Add(Operation::Ufunc("square", {ProgramSpec::Handle(1)}), 2);
  spec.Add(Operation::Reduce(Reduction::kSum, ProgramSpec::Handle(2)), 3);
  spec.Add(Operation::Ufunc("sqrt", {ProgramSpec::Handle(3)}), 4);
  spec.outputs = {2, 4};
  auto program = client.CreateProgram(spec);
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_EQ(program->name, "tenants/default/programs/norm");
  EXPECT_EQ(program->num_tasks, 1);
  ASSERT_EQ(program->results.size(), 2u);
  EXPECT_EQ(program->results[0].shape, std::vector<int64_t>{3});
  for (double x : {2, 4}) {
    auto input = client.Put(std::vector<double>{x, x, x / 2}, {3});
    ASSERT_TRUE(input);
    const auto arrays = client.ComputeAll(Operation::Call(*program, {*input}));
    ASSERT_EQ(arrays.size(), 2u);
    EXPECT_THAT(*client.Fetch<double>(arrays[0]), ElementsAre(x * x, x * x, x * x / 4));
    EXPECT_THAT(*client.Fetch<double>(arrays[1]), ElementsAre(1.5 * x));
  }
  auto all = client.ListPrograms();
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 1u);
  EXPECT_TRUE(client.DeleteProgram(program->name));
  EXPECT_FALSE(client.DeleteProgram(program->name));
  EXPECT_FALSE(client.CreateProgram({.id = "empty"}));
}

// Doubles the sum until it is 100 or more, and then halves it or not.
TEST(ProgramTest, ClientLoopsAndBranches) {
  Daemon daemon;
  Client client = daemon.Connect();
  const auto handle = ProgramSpec::Handle;
  Body twice{.inputs = {1}, .outputs = {4, 2}};
  twice.Add(Operation::Ufunc("multiply", {handle(1), 2.0}), 2);
  twice.Add(Operation::Reduce(Reduction::kSum, handle(2)), 3);
  twice.Add(Operation::Ufunc("less", {handle(3), 100.0}), 4);
  Body half{.inputs = {1}, .outputs = {2}}, same{.inputs = {1}, .outputs = {2}};
  half.Add(Operation::Ufunc("divide", {handle(1), 2.0}), 2);
  same.Add(Operation::Copy(handle(1)), 2);
  ProgramSpec spec{.id = "doubles", .inputs = {{.handle = 1}, {.handle = 2}}, .outputs = {6}};
  spec.Add(Operation::Reduce(Reduction::kSum, handle(1)), 3);
  spec.Add(Operation::Ufunc("less", {handle(3), 100.0}), 4);
  spec.Add(Operation::Loop({.body = twice, .carried = {handle(1)}, .condition = handle(4)}), 5);
  spec.Add(Operation::Branch({.index = handle(2), .inputs = {handle(5)}, .bodies = {same, half}}),
           6);
  auto program = client.CreateProgram(spec);
  ASSERT_TRUE(program) << program.error().message;
  auto input = client.Put(std::vector<double>{1, 2}, {2});
  ASSERT_TRUE(input);
  for (int64_t index : {0, 1}) {
    auto chosen = client.Put(std::vector<int64_t>{index}, {});
    ASSERT_TRUE(chosen);
    const auto arrays = client.ComputeAll(Operation::Call(*program, {*input, *chosen}));
    ASSERT_EQ(arrays.size(), 1u);
    const double scale = index == 0 ? 64 : 32;
    EXPECT_THAT(*client.Fetch<double>(arrays[0]), ElementsAre(scale, 2 * scale));
  }
  spec.operations[2] = Operation::Loop({.body = twice, .carried = {handle(1)}});
  EXPECT_FALSE(client.CreateProgram(spec));
}

// An error found by a step fails the call and all of its results.
TEST(ProgramTest, FailingStepFailsTheWholeCall) {
  Daemon daemon;
  Caller caller(daemon.address());
  ASSERT_TRUE(caller
                  .Create("pick", R"(
    inputs { handle: 1 } inputs { handle: 2 } outputs: 4 outputs: 6
    operations { ufunc { function: 'square' inputs { handle: 1 } } outputs { handle: 3 } }
    operations { reduction { function: FUNCTION_SUM input { handle: 3 } } outputs { handle: 4 } }
    operations { copy { input { handle: 2 } data_type: DATA_TYPE_INT64 } outputs { handle: 5 } }
    operations { gather { input { handle: 3 } indices { handle: 5 } mode: INDEX_MODE_RAISE }
      outputs { handle: 6 } })")
                  .ok());
  for (double last : {1, 7, 2}) {
    const v1::RunRequest request = caller.CallOf("pick", {{1, 2, 3}, {0, last}}, 2);
    if (last < 3) {
      EXPECT_THAT(caller.Values(request).at(1), ElementsAre(1, (last + 1) * (last + 1)));
      continue;
    }
    const Outcome outcome = caller.Run(request);
    EXPECT_EQ(outcome.code, 11) << outcome.ToString();  // OUT_OF_RANGE
    EXPECT_NE(outcome.message.find("(gather)"), std::string::npos) << outcome.ToString();
    EXPECT_EQ(outcome.metadata.at("operation"), "program pick");
  }
}

// A write over its own input needs a copy: such a program runs step by step.
TEST(ProgramTest, UnsupportedGraphRunsStepByStep) {
  Daemon daemon;
  Caller caller(daemon.address());
  const Outcome created = caller.Create("shift", R"(
    inputs { handle: 1 spec { data_type: DATA_TYPE_FLOAT64 shape: 4 } } outputs: 2 outputs: 5
    operations { copy { input { handle: 1 } } outputs { handle: 2 } }
    operations { view { input { handle: 2 } steps { slice { axis: 0 start: 1 } } }
      outputs { handle: 3 } }
    operations { view { input { handle: 2 } steps { slice { axis: 0 stop: 3 } } }
      outputs { handle: 4 } }
    operations { copy { input { handle: 4 } } outputs { handle: 3 existing: true } }
    operations { reduction { function: FUNCTION_SUM input { handle: 2 } } outputs { handle: 5 } })");
  ASSERT_TRUE(created.ok()) << created.ToString();
  v1::CreateProgramResponse response;
  ASSERT_TRUE(response.ParseFromString(created.replies.at(0)));
  EXPECT_GT(response.num_tasks(), 1);
  const auto values = caller.Values(caller.CallOf("shift", {{1, 2, 3, 4}}, 2));
  ASSERT_EQ(values.size(), 2u);
  EXPECT_THAT(values[0], ElementsAre(1, 1, 2, 3));
  EXPECT_THAT(values[1], ElementsAre(7));
}

constexpr char kScale[] =
    "extern \\\"C\\\" __global__ void scale(const double* x, double* y, double a, int n) "
    "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i]; }";

std::string ScaleProgram(const std::string& code) {
  return R"(inputs { handle: 1 } outputs: 4
    operations { ufunc { function: 'add' inputs { handle: 1 } inputs { scalar { float_value: 1 } } }
      outputs { handle: 2 } }
    operations { kernel_launch { )" +
         code + R"( entry: 'scale' grid { x: 1 } block { x: 32 }
      arguments { array { handle: 2 } }
      arguments { new_array { spec { data_type: DATA_TYPE_FLOAT64 shape: 3 } output { handle: 3 } } }
      arguments { scalar { float_value: 10 } } arguments { scalar { int_value: 3 } } } }
    operations { ufunc { function: 'negative' inputs { handle: 3 } } outputs { handle: 4 } })";
}

TEST(ProgramTest, ProgramContainsKernels) {
  Daemon daemon;
  Caller caller(daemon.address());
  const Outcome created =
      caller.Create("scale", ScaleProgram("source: \"" + std::string(kScale) + "\""));
  ASSERT_TRUE(created.ok()) << created.ToString();
  for (double x : {1, 2}) {
    EXPECT_THAT(caller.Values(caller.CallOf("scale", {{x, 2, 3}}, 1)).at(0),
                ElementsAre(-10 * (x + 1), -30, -40));
  }
  // A missing entry point is reported with its step.
  ASSERT_TRUE(caller.Create("wrong", ScaleProgram("source: \"__global__ void other() {}\"")).ok());
  const Outcome outcome = caller.Run(caller.CallOf("wrong", {{1, 2, 3}}, 1));
  EXPECT_EQ(outcome.code, kInvalidArgument) << outcome.ToString();
  const Outcome no_module =
      caller.Create("none", ScaleProgram("module: 'tenants/default/modules/none'"));
  EXPECT_EQ(no_module.code, kNotFound) << no_module.ToString();
}

TEST(ProgramTest, ProgramCallsPrograms) {
  Daemon daemon({"--supervise"});
  Caller caller(daemon.address());
  ASSERT_TRUE(caller.Create("squares", kProgram).ok());
  // squares(x, y) twice: the second time with its own result.
  const std::string twice = R"(inputs { handle: 1 } outputs: 4 outputs: 5
    operations { program_call { program: 'tenants/default/programs/squares'
      inputs { handle: 1 } inputs { handle: 1 } } outputs { handle: 2 } outputs { handle: 3 } }
    operations { program_call { program: 'tenants/default/programs/squares'
      inputs { handle: 2 } inputs { handle: 3 } } outputs { handle: 4 } outputs { handle: 5 } })";
  const Outcome created = caller.Create("twice", twice);
  ASSERT_TRUE(created.ok()) << created.ToString();
  EXPECT_EQ(caller
                .Create("lost", R"(inputs { handle: 1 } outputs: 2
    operations { program_call { program: 'tenants/default/programs/none' inputs { handle: 1 } }
      outputs { handle: 2 } })")
                .code,
            kNotFound);
  // The called program may be deleted.
  v1::DeleteProgramRequest gone;
  gone.set_name("tenants/default/programs/squares");
  ASSERT_TRUE(caller.rpc().Call("ProgramService/DeleteProgram", gone).ok());
  auto check = [](Caller& caller) {
    // (2x)^2 = 4, 16; sum 20: (24)^2, (36)^2
    const auto values = caller.Values(caller.CallOf("twice", {{1, 2}}, 2));
    ASSERT_EQ(values.size(), 2u);
    EXPECT_THAT(values[0], ElementsAre(576, 1296));
    EXPECT_THAT(values[1], ElementsAre(1872));
  };
  check(caller);
  const int times = daemon.TimesReady();
  kill(daemon.ServingPid(), SIGKILL);
  ASSERT_TRUE(daemon.WaitReady(times + 1, std::chrono::seconds(100))) << daemon.Log();
  Caller again(daemon.address());
  check(again);
}

TEST(ProgramTest, JobCallsPrograms) {
  Daemon daemon;
  Caller caller(daemon.address());
  ASSERT_TRUE(caller.Create("squares", kProgram).ok());
  v1::CreateJobRequest request;
  for (int round = 0; round < 2; ++round) {
    auto* operation = request.mutable_job()->add_operations();
    *operation = caller.CallOf("squares", {{1, 2, 3}, {0, 0, round + 0.0}}, 0).operation();
    operation->add_outputs()->set_handle(10 + round);
    operation->add_outputs()->set_name("tenants/default/arrays/sum" + std::to_string(round));
  }
  v1::Job job = caller.rpc().Get<v1::CreateJobResponse>("JobService/CreateJob", request).job();
  v1::GetJobRequest get;
  get.set_name(job.name());
  for (int i = 0; i < 600 && job.state() < v1::Job::STATE_SUCCEEDED; ++i) {
    usleep(50'000);
    job = caller.rpc().Get<v1::GetJobResponse>("JobService/GetJob", get).job();
  }
  EXPECT_EQ(job.state(), v1::Job::STATE_SUCCEEDED) << job.ShortDebugString();
  EXPECT_EQ(job.results_size(), 2);
  EXPECT_EQ(job.timelines_size(), 2) << job.ShortDebugString();
}

// A kernel that never ends, in the middle of a program.
std::string EndlessProgram() {
  return ScaleProgram(
      "source: \"extern \\\"C\\\" __global__ void scale(const double* x, double* y, double a, int "
      "n)"
      " { volatile double* p = y; while (p[0] < 1) {} }\"");
}

TEST(ProgramTest, CancelOrDeadlineEndsRunningProgram) {
  Daemon daemon({"--kill-grace=200ms"});
  Caller caller(daemon.address());
  ASSERT_TRUE(caller.Create("endless", EndlessProgram()).ok());
  ASSERT_TRUE(caller.Create("scale", ScaleProgram("source: \"" + std::string(kScale) + "\"")).ok());
  EXPECT_THAT(caller.Values(caller.CallOf("scale", {{1, 2, 3}}, 1)).at(0),
              ElementsAre(-20, -30, -40));
  const Outcome late = caller.rpc().Call(
      "ComputeService/Run", caller.CallOf("endless", {{1, 2, 3}}, 1), std::chrono::seconds(4));
  EXPECT_EQ(late.code, 4) << late.ToString();  // DEADLINE_EXCEEDED
  EXPECT_THAT(caller.Values(caller.CallOf("scale", {{1, 2, 3}}, 1)).at(0),
              ElementsAre(-20, -30, -40));
}

// The running program creates its results again: it runs again in the next worker.
TEST(ProgramTest, ProgramOutlivesItsWorker) {
  Daemon daemon;
  Caller caller(daemon.address());
  std::string slow = "inputs { handle: 1 } outputs: 401 ";
  for (int i = 1; i <= 400; ++i) {
    slow += "operations { accumulation { function: 'add' input { handle: " + std::to_string(i) +
            " } axis: 0 } outputs { handle: " + std::to_string(i + 1) + " } } ";
  }
  ASSERT_TRUE(caller.Create("slow", slow).ok());
  std::vector<double> zeros(1 << 18);
  const v1::RunRequest request = caller.CallOf("slow", {zeros}, 1);
  ASSERT_EQ(caller.Values(request).at(0).size(), zeros.size());
  for (int round = 0; round < 3; ++round) {
    std::thread killer([&] {
      usleep(60'000 + 20'000 * round);
      for (pid_t pid : daemon.Workers()) kill(pid, SIGKILL);
    });
    EXPECT_EQ(caller.Values(request).at(0), zeros);
    killer.join();
  }
}

// Adds 1 to the input until its sum is `end` or more.
std::string CountingProgram(double end) {
  const std::string number = std::to_string(end);
  const auto test = [&](int array, int sum, int result) {
    return "operations { reduction { function: FUNCTION_SUM input { handle: " +
           std::to_string(array) + " } } outputs { handle: " + std::to_string(sum) +
           " } } operations { ufunc { function: 'less' inputs { handle: " + std::to_string(sum) +
           " } inputs { scalar { float_value: " + number +
           " } } } outputs { handle: " + std::to_string(result) + " } } ";
  };
  return "inputs { handle: 1 } " + test(1, 2, 3) +
         "operations { loop { carried { handle: 1 } condition { handle: 3 } body { inputs: 1 "
         "operations { ufunc { function: 'add' inputs { handle: 1 } inputs { scalar { "
         "float_value: 1 } } } outputs { handle: 2 } } " +
         test(2, 3, 4) + "outputs: 4 outputs: 2 } } outputs { handle: 4 } } outputs: 4";
}

TEST(ProgramTest, LoopRunsUntilItsConditionIsFalse) {
  Daemon daemon;
  Caller caller(daemon.address());
  const Outcome created = caller.Create("count", CountingProgram(1000));
  ASSERT_TRUE(created.ok()) << created.ToString();
  for (double x : {2, 3}) {
    const auto values = caller.Values(caller.CallOf("count", {{1, x}}, 1));
    const double trips = std::ceil((1000 - (1 + x)) / 2);
    EXPECT_THAT(values.at(0), ElementsAre(1 + trips, x + trips));
  }
  // No iteration: the result is a separate array.
  EXPECT_THAT(caller.Values(caller.CallOf("count", {{999, 2}}, 1)).at(0), ElementsAre(999, 2));
}

// Running sums of the second input from the first on, and their squares.
std::string SumsProgram(int count, const std::string& options = "") {
  return "inputs { handle: 1 } inputs { handle: 2 } operations { loop { carried { handle: 1 } "
         "scanned { handle: 2 } count: " +
         std::to_string(count) + " " + options +
         " body { inputs: 1 inputs: 2 "
         "operations { ufunc { function: 'add' inputs { handle: 1 } inputs { handle: 2 } } outputs "
         "{ handle: 3 } } operations { ufunc { function: 'square' inputs { handle: 3 } } outputs { "
         "handle: 4 } } outputs: 3 outputs: 4 } } outputs { handle: 4 } outputs { handle: 5 } } "
         "outputs: 4 outputs: 5";
}

TEST(ProgramTest, CountedLoopScansAndStacks) {
  Daemon daemon;
  Caller caller(daemon.address());
  ASSERT_TRUE(caller.Create("sums", SumsProgram(300)).ok());
  ASSERT_TRUE(caller.Create("back", SumsProgram(300, "reverse: true")).ok());
  ASSERT_TRUE(caller.Create("none", SumsProgram(0)).ok());
  std::vector<double> steps, squares(300), reversed(300);
  for (int i = 0; i < 300; ++i) steps.push_back(i % 7);
  double sum = 5, back = 5;
  for (int i = 0; i < 300; ++i) {
    sum += steps[i];
    squares[i] = sum * sum;
    back += steps[299 - i];
    reversed[299 - i] = back * back;
  }
  // Inputs of one axis, whose elements have none: the carried array broadcasts to nothing else.
  auto call = [&](const std::string& id, const std::vector<double>& values) {
    v1::RunRequest request = caller.CallOf(id, {{5}, values}, 2);
    request.mutable_operation()
        ->mutable_program_call()
        ->mutable_inputs(0)
        ->mutable_inline_array()
        ->mutable_spec()
        ->clear_shape();
    return caller.Values(request);
  };
  EXPECT_EQ(call("sums", steps), (std::vector<std::vector<double>>{{sum}, squares}));
  EXPECT_EQ(call("back", steps), (std::vector<std::vector<double>>{{sum}, reversed}));
  EXPECT_EQ(call("none", {}), (std::vector<std::vector<double>>{{5}, {}}));
  const Outcome wrong = caller.Run(caller.CallOf("sums", {{1}, {1, 2, 3}}, 2));
  EXPECT_EQ(wrong.code, kInvalidArgument) << wrong.ToString();
  ASSERT_EQ(wrong.violations.size(), 1u);
  EXPECT_EQ(wrong.violations[0].field,
            "operation.program_call.program.operations[0].loop.scanned[0]");
}

// A loop in a branch in a loop: while the sum is less than 1000 either doubles it, or adds 1 four
// times if it is less than 10.
constexpr char kNested[] = R"(
  inputs { handle: 1 }
  operations { ufunc { function: 'less' inputs { handle: 1 } inputs { scalar { float_value: 1000 } } }
               outputs { handle: 2 } }
  operations { loop { carried { handle: 1 } condition { handle: 2 } body { inputs: 1
    operations { ufunc { function: 'less' inputs { handle: 1 } inputs { scalar { float_value: 10 } } }
                 outputs { handle: 2 } }
    operations { branch { index { handle: 2 } inputs { handle: 1 }
      bodies { inputs: 1 outputs: 2 operations { ufunc { function: 'add' inputs { handle: 1 } inputs { handle: 1 } }
                                                 outputs { handle: 2 } } }
      bodies { inputs: 1 outputs: 2 operations { loop { carried { handle: 1 } count: 4 body { inputs: 1 outputs: 2
        operations { ufunc { function: 'add' inputs { handle: 1 } inputs { scalar { float_value: 1 } } }
                     outputs { handle: 2 } } } } outputs { handle: 2 } } }
    } outputs { handle: 3 } }
    operations { ufunc { function: 'less' inputs { handle: 3 } inputs { scalar { float_value: 1000 } } }
                 outputs { handle: 4 } }
    outputs: 4 outputs: 3 } } outputs { handle: 3 } }
  outputs: 3)";

TEST(ProgramTest, LoopsAndBranchesNest) {
  Daemon daemon;
  Caller caller(daemon.address());
  const Outcome created = caller.Create("nested", kNested);
  ASSERT_TRUE(created.ok()) << created.ToString();
  for (double x : {1.0, 11.0, 5000.0}) {
    double value = x;
    while (value < 1000) value = value < 10 ? value + 4 : 2 * value;
    v1::RunRequest request = caller.CallOf("nested", {{x}}, 1);
    request.mutable_operation()
        ->mutable_program_call()
        ->mutable_inputs(0)
        ->mutable_inline_array()
        ->mutable_spec()
        ->clear_shape();
    EXPECT_THAT(caller.Values(request).at(0), ElementsAre(value));
  }
}

v1::Job JobOf(const Caller& caller, const v1::CreateJobRequest& request) {
  return caller.rpc().Get<v1::CreateJobResponse>("JobService/CreateJob", request).job();
}

// Waits until `until` is true, for at most a minute.
template <typename Until>
v1::Job AwaitJob(const Caller& caller, const std::string& name, Until until) {
  v1::GetJobRequest get;
  get.set_name(name);
  v1::Job job;
  for (int i = 0; i < 1200; ++i) {
    job = caller.rpc().Get<v1::GetJobResponse>("JobService/GetJob", get).job();
    if (until(job)) break;
    usleep(50'000);
  }
  return job;
}

TEST(ProgramTest, EndlessLoopBlocksNoOtherAndCanBeCancelled) {
  Daemon daemon({"--supervise"});
  Caller caller(daemon.address());
  ASSERT_TRUE(caller.Create("endless", CountingProgram(1e300)).ok());
  ASSERT_TRUE(caller.Create("count", CountingProgram(10)).ok());
  v1::CreateJobRequest request;
  *request.mutable_job()->add_operations() = caller.CallOf("endless", {{1, 2}}, 0).operation();
  request.mutable_job()->mutable_operations(0)->add_outputs()->set_handle(10);
  const auto runs = [](const v1::Job& job) { return job.state() == v1::Job::STATE_RUNNING; };
  const auto ended = [](const v1::Job& job) { return job.state() >= v1::Job::STATE_SUCCEEDED; };
  v1::Job job = AwaitJob(caller, JobOf(caller, request).name(), runs);
  EXPECT_EQ(job.state(), v1::Job::STATE_RUNNING) << job.ShortDebugString();
  EXPECT_THAT(caller.Values(caller.CallOf("count", {{1, 2}}, 1)).at(0), ElementsAre(5, 6));
  v1::CancelJobRequest cancel;
  cancel.set_name(job.name());
  EXPECT_TRUE(caller.rpc().Call("JobService/CancelJob", cancel).ok());
  job = AwaitJob(caller, job.name(), ended);
  EXPECT_EQ(job.state(), v1::Job::STATE_CANCELLED) << job.ShortDebugString();
  // By its deadline.
  const Outcome late = caller.rpc().Call(
      "ComputeService/Run", caller.CallOf("endless", {{1, 2}}, 1), std::chrono::seconds(2));
  EXPECT_EQ(late.code, 4) << late.ToString();  // DEADLINE_EXCEEDED
  // With the daemon, whose successor reports it.
  job = AwaitJob(caller, JobOf(caller, request).name(), runs);
  const int times = daemon.TimesReady();
  kill(daemon.ServingPid(), SIGKILL);
  ASSERT_TRUE(daemon.WaitReady(times + 1, std::chrono::seconds(100))) << daemon.Log();
  Caller again(daemon.address());
  job = AwaitJob(again, job.name(), ended);
  EXPECT_EQ(job.state(), v1::Job::STATE_FAILED) << job.ShortDebugString();
  EXPECT_THAT(job.error().message(), ::testing::HasSubstr("call it again"));
  EXPECT_THAT(again.Values(again.CallOf("count", {{1, 2}}, 1)).at(0), ElementsAre(5, 6));
}

TEST(ProgramTest, FailingIterationFailsTheLoop) {
  Daemon daemon;
  Caller caller(daemon.address());
  // The carried index leaves the array in the fourth iteration.
  const std::string program =
      "inputs { handle: 1 } operations { creation { fill { spec { data_type: DATA_TYPE_INT64 } } } "
      "outputs { handle: 2 } } operations { loop { constants { handle: 1 } carried { handle: 2 } "
      "count: 1000000 body { inputs: 1 inputs: 2 operations { gather { input { handle: 1 } indices "
      "{ handle: 2 } } outputs { handle: 3 } } operations { ufunc { "
      "function: 'add' inputs { handle: 2 } inputs { scalar { int_value: 1 } } } outputs { handle: "
      "4 } } outputs: 4 outputs: 3 } } outputs { handle: 5 } outputs { handle: 6 } } outputs: 5";
  const Outcome created = caller.Create("leaves", program);
  ASSERT_TRUE(created.ok()) << created.ToString();
  const Outcome failed = caller.Run(caller.CallOf("leaves", {{1, 2, 3}}, 1));
  EXPECT_EQ(failed.code, 11) << failed.ToString();  // OUT_OF_RANGE
}

TEST(ProgramTest, KernelMayNotWriteInputOfABody) {
  Daemon daemon;
  Caller caller(daemon.address());
  const std::string launch =
      "operations { kernel_launch { source: \"extern \\\"C\\\" __global__ void raise(double* x) { "
      "x[0] += 1; }\" entry: 'raise' grid { x: 1 } block { x: 1 } arguments { array { handle: %h } "
      "} "
      "} } ";
  auto with = [&](int handle) {
    std::string text = launch;
    text.replace(text.find("%h"), 2, std::to_string(handle));
    return "inputs { handle: 1 } operations { loop { carried { handle: 1 } count: 3 body { inputs: "
           "1 operations { copy { input { handle: 1 } } outputs { handle: 2 } } " +
           text + "outputs: 2 } } outputs { handle: 2 } } outputs: 2";
  };
  const Outcome created = caller.Create("copies", with(2));
  ASSERT_TRUE(created.ok()) << created.ToString();
  ASSERT_TRUE(caller.Create("writes", with(1)).ok());
  EXPECT_THAT(caller.Values(caller.CallOf("copies", {{1, 2}}, 1)).at(0), ElementsAre(4, 2));
  const Outcome refused = caller.Run(caller.CallOf("writes", {{1, 2}}, 1));
  EXPECT_EQ(refused.code, 9) << refused.ToString();  // FAILED_PRECONDITION
  EXPECT_THAT(refused.ToString(), ::testing::HasSubstr("writes an input of the body"));
}

}  // namespace
}  // namespace stride::testing
