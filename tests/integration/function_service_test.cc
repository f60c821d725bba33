// Client functions through a daemon: they behave like built-in ones, belong to their tenant, and
// harm no other.

#include <google/protobuf/text_format.h>
#include <signal.h>

#include <cstring>

#include "gmock/gmock.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/function_service.pb.h"
#include "stride/v1/session_service.pb.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/rpc.h"

namespace stride::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kInvalidArgument = 3, kNotFound = 5, kAlreadyExists = 6, kFailedPrecondition = 9;

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

// `@(0 1 2)` is an inline array of float64.
std::string Expand(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '@' || text[i + 1] != '(') {
      out += text[i];
      continue;
    }
    const size_t end = text.find(')', i);
    std::istringstream numbers(text.substr(i + 2, end - i - 2));
    v1::InlineArray array;
    array.mutable_spec()->set_data_type(v1::DATA_TYPE_FLOAT64);
    double number = 0;
    int64_t count = 0;
    for (; numbers >> number; ++count)
      array.mutable_data()->append(reinterpret_cast<const char*>(&number), 8);
    array.mutable_spec()->add_shape(count);
    out += "inline_array { " + array.ShortDebugString() + " }";
    i = end;
  }
  return out;
}

class Caller {
 public:
  explicit Caller(const std::string& address, const std::string& tenant = "")
      : rpc_(address, tenant) {}

  Outcome Create(const std::string& id, const std::string& function) {
    auto request = Parse<v1::CreateFunctionRequest>("function { " + function + " }");
    request.set_function_id(id);
    return rpc_.Call("FunctionService/CreateFunction", request);
  }
  Outcome Delete(const std::string& name) {
    v1::DeleteFunctionRequest request;
    request.set_name(name);
    return rpc_.Call("FunctionService/DeleteFunction", request);
  }
  Outcome Run(const std::string& operation) {
    return rpc_.Call("ComputeService/Run",
                     Parse<v1::RunRequest>(Expand("operation { " + operation +
                                                  " outputs { inline_result: true } }")));
  }
  // The float64 result that was returned inline.
  std::vector<double> Values(const std::string& operation) {
    const Outcome outcome = Run(operation);
    EXPECT_TRUE(outcome.ok()) << outcome.ToString();
    v1::RunResponse response;
    if (!outcome.ok() || !response.ParseFromString(outcome.replies.at(0))) return {};
    const std::string& bytes = response.results(0).inline_array().data();
    std::vector<double> values(bytes.size() / 8);
    std::memcpy(values.data(), bytes.data(), bytes.size() / 8 * 8);
    return values;
  }
  const Rpc& rpc() const { return rpc_; }

 private:
  Rpc rpc_;
};

constexpr char kScaled[] =
    "ufunc { signatures: 'float64,float64->float64' body { device_function { entry: 'scaled' "
    "source: "
    "'__device__ double scaled(double a, double b) { return 10 * a + b; }' } } }";

class FunctionServiceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    daemon_ = std::make_unique<Daemon>(std::vector<std::string>{"--trust-tenant-header"});
  }
  static void TearDownTestSuite() { daemon_.reset(); }
  Caller caller_{daemon_->address()};
  static inline std::unique_ptr<Daemon> daemon_;
};

TEST_F(FunctionServiceTest, UfuncBehavesLikeABuiltInOne) {
  ASSERT_TRUE(caller_.Create("scaled", kScaled).ok());
  EXPECT_THAT(caller_.Values("ufunc { function: 'scaled' inputs { @(1 2) } inputs { @(3) } }"),
              ElementsAre(13, 23));
  EXPECT_THAT(caller_.Values("ufunc { function: 'scaled' inputs { @(1 2) } inputs { scalar { "
                             "int_value: 4 } } }"),
              ElementsAre(14, 24));
  EXPECT_THAT(
      caller_.Values("expression { text: 'scaled(x, 1) * 2' inputs { key: 'x' value { @(1 2) } "
                     "} }"),
      ElementsAre(22, 42));
  // In order, since the function is not declared associative.
  EXPECT_THAT(caller_.Values("reduction { function_name: 'scaled' input { @(1 2 3) } }"),
              ElementsAre(123));
  EXPECT_THAT(caller_.Values("accumulation { function: 'scaled' input { @(1 2 3) } }"),
              ElementsAre(1, 12, 123));
  EXPECT_THAT(caller_.Values("outer { function: 'scaled' left { @(1 2) } right { @(3 4) } }"),
              ElementsAre(13, 14, 23, 24));
  EXPECT_EQ(caller_.Create("scaled", kScaled).code, kAlreadyExists);
  EXPECT_EQ(caller_.rpc()
                .Get<v1::ListFunctionsResponse>("FunctionService/ListFunctions",
                                                v1::ListFunctionsRequest())
                .functions_size(),
            1);
  ASSERT_TRUE(caller_.Delete("tenants/default/functions/scaled").ok());
  const Outcome gone =
      caller_.Run("ufunc { function: 'scaled' inputs { @(1 2) } inputs { @(3) } }");
  EXPECT_EQ(gone.code, kInvalidArgument);
  EXPECT_EQ(gone.reason, "UNKNOWN_FUNCTION");
}

TEST_F(FunctionServiceTest, ReductionsAndGufuncs) {
  ASSERT_TRUE(
      caller_
          .Create("norm2",
                  "reduction { signatures: 'float64->float64' map { expression { text: 'x*x' "
                  "parameters: 'x' } } combine { expression { text: 'a+b' parameters: 'a' "
                  "parameters: 'b' } } finish { expression { text: 'sqrt(s)' parameters: 's' "
                  "} } identity { int_value: 0 } }")
          .ok());
  EXPECT_THAT(caller_.Values("reduction { function_name: 'norm2' input { @(3 4) } }"),
              ElementsAre(5));
  ASSERT_TRUE(
      caller_
          .Create("running",
                  "gufunc { layout: '(n)->(n)' signatures: 'float64->float64' body { entry: "
                  "'body' source: 'template <class A, class B> __device__ void body(A a, B b) "
                  "{ double s = 0; for (int i = 0; i < a.size(0); ++i) b(i) = s += a(i); }' } "
                  "}")
          .ok());
  EXPECT_THAT(caller_.Values("gufunc { function: 'running' inputs { @(1 2 3) } }"),
              ElementsAre(1, 3, 6));
  EXPECT_THAT(
      caller_.Values("gufunc { function: 'vecdot' inputs { @(1 2 3) } inputs { @(4 5 6) } }"),
      ElementsAre(32));
  EXPECT_THAT(caller_.Values("reduce_at { function: 'add' input { @(1 2 3 4) } indices { "
                             "inline_array { spec { data_type: DATA_TYPE_INT8 shape: 2 } data: "
                             "'\\000\\002' } } }"),
              ElementsAre(3, 7));
}

TEST_F(FunctionServiceTest, InvalidTextIsRefusedWithTheLog) {
  const Outcome outcome = caller_.Create(
      "wrong",
      "ufunc { signatures: 'float64->float64' body { device_function { entry: 'f' source: "
      "'__device__ double f(double x) {\\n return missing; }' } } }");
  EXPECT_EQ(outcome.code, kInvalidArgument) << outcome.ToString();
  EXPECT_EQ(outcome.reason, "COMPILE_FAILED");
  EXPECT_THAT(outcome.message, HasSubstr("missing"));
  ASSERT_EQ(outcome.violations.size(), 1u);
  EXPECT_EQ(outcome.violations[0].field, "function.ufunc.body.device_function.source");
  // The name is free again.
  EXPECT_TRUE(
      caller_.Create("wrong", "ufunc { body { expression { text: 'x' parameters: 'x' } } }").ok());
  EXPECT_EQ(caller_.Create("add", kScaled).violations.at(0).field, "function_id");
  EXPECT_EQ(caller_.Create("f", "ufunc { body { expression { text: 'x+' parameters: 'x' } } }")
                .violations.at(0)
                .field,
            "function.ufunc.body.expression.text");
}

TEST_F(FunctionServiceTest, FunctionBelongsToItsTenant) {
  Caller owner(daemon_->address(), "owner"), other(daemon_->address(), "other");
  ASSERT_TRUE(owner.Create("mine", kScaled).ok());
  const std::string call = "ufunc { function: 'mine' inputs { @(1) } inputs { @(3) } }";
  EXPECT_THAT(owner.Values(call), ElementsAre(13));
  EXPECT_EQ(other.Run(call).reason, "UNKNOWN_FUNCTION");
  const Outcome theirs = other.Delete("tenants/owner/functions/mine");
  const Outcome missing = other.Delete("tenants/owner/functions/none");
  EXPECT_EQ(theirs.code, kNotFound);
  EXPECT_EQ(theirs.reason, "FUNCTION_NOT_FOUND");
  EXPECT_EQ(theirs.reason, missing.reason);
  // The other tenant may use the same name.
  EXPECT_TRUE(other.Create("mine", kScaled).ok());
  EXPECT_THAT(owner.Values(call), ElementsAre(13));
}

TEST_F(FunctionServiceTest, FaultFailsOnlyItsOperation) {
  ASSERT_TRUE(
      caller_
          .Create("trap",
                  "gufunc { layout: '(n)->(n)' signatures: 'float64->float64' body { entry: "
                  "'body' source: '__device__ void body(stride_view<const double, 1> a, "
                  "stride_view<double, 1> b) { *(volatile double*)8 = a(0); }' } }")
          .ok());
  const Outcome outcome = caller_.Run("gufunc { function: 'trap' inputs { @(1 2 3) } }");
  EXPECT_EQ(outcome.code, kFailedPrecondition) << outcome.ToString();
  EXPECT_EQ(outcome.reason, "KERNEL_FAULT") << outcome.ToString();
  EXPECT_THAT(caller_.Values("ufunc { function: 'add' inputs { @(1 2) } inputs { @(3) } }"),
              ElementsAre(4, 5));
}

TEST(FunctionRestartTest, FunctionsOutliveTheDaemon) {
  Daemon daemon({"--supervise"});
  Caller caller(daemon.address());
  ASSERT_TRUE(caller.Create("scaled", kScaled).ok());
  const int times = daemon.TimesReady();
  kill(daemon.ServingPid(), SIGKILL);
  ASSERT_TRUE(daemon.WaitReady(times + 1, std::chrono::seconds(100))) << daemon.Log();
  Caller again(daemon.address());
  EXPECT_THAT(again.Values("ufunc { function: 'scaled' inputs { @(1 2) } inputs { @(3) } }"),
              ElementsAre(13, 23));
}

}  // namespace
}  // namespace stride::testing
