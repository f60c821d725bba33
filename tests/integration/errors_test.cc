// Every mistake that a client can make gets its code, its reason, the invalid field and a helpful
// text.

#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>

#include "gmock/gmock.h"
#include "google/rpc/status.pb.h"
#include "stride/v1/array_service.pb.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/device_service.pb.h"
#include "stride/v1/job_service.pb.h"
#include "stride/v1/kernel_service.pb.h"
#include "stride/v1/session_service.pb.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/rpc.h"

namespace stride::testing {
namespace {

using ::testing::HasSubstr;

// gRPC's numbers.
enum Codes { kInvalid = 3, kNotFound = 5, kExists = 6, kPrecondition = 9, kUnimplemented = 12 };

// One mistake. `messages` are text protobufs of the method's request, with the short forms of
// Expand.
struct Row {
  const char* name;
  const char* method;
  std::vector<std::string> messages;
  int code;
  const char* reason;
  const char* field;  // field of the first violation; only for kInvalid
  const char* text;
};

std::string Replace(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// `@F23` is an inline array of float32 with shape (2, 3), and so on; `@OUT` an inline output.
std::string Expand(std::string text) {
  auto inline_array = [](const char* type, const std::string& shape, int bytes) {
    std::string data;
    for (int i = 0; i < bytes; ++i) data += "\\000";
    return "inline_array { spec { data_type: DATA_TYPE_" + std::string(type) + " " + shape +
           " } data: \"" + data + "\" }";
  };
  text = Replace(text, "@F23", inline_array("FLOAT32", "shape: 2 shape: 3", 24));
  text = Replace(text, "@F2", inline_array("FLOAT32", "shape: 2", 8));
  text = Replace(text, "@F3", inline_array("FLOAT32", "shape: 3", 12));
  text = Replace(text, "@I3", inline_array("INT32", "shape: 3", 12));
  text = Replace(text, "@C2", inline_array("COMPLEX64", "shape: 2", 16));
  text = Replace(text, "@E", inline_array("FLOAT32", "shape: 0", 0));
  return Replace(text, "@OUT", "outputs { inline_result: true }");
}

class ErrorsTest : public ::testing::TestWithParam<Row> {
 protected:
  static void SetUpTestSuite() {
    // The descriptors for parsing the rows.
    for (const auto* file :
         {v1::RunRequest::descriptor()->file(), v1::PutArrayRequest::descriptor()->file(),
          v1::CreateJobRequest::descriptor()->file(), v1::Module::descriptor()->file(),
          v1::Device::descriptor()->file(), v1::Session::descriptor()->file()})
      ASSERT_NE(file, nullptr);
    daemon_ = std::make_unique<Daemon>(
        std::vector<std::string>{"--max-array-bytes=1000000000", "--session-ttl=1h"});
    rpc_ = std::make_unique<Rpc>(daemon_->address());
    v1::CreateSessionRequest session;
    session.set_session_id("s");
    ASSERT_TRUE(rpc_->Call("SessionService/CreateSession", session).ok());
    // An array, a pending upload, a module and a job that rows refer to. Two of the session's
    // arrays: a refused write in place fails later uses in other rows.
    for (const auto& [parent, id] : std::vector<std::pair<std::string, std::string>>{
             {"tenants/default", "7"}, {"sessions/s", "7"}, {"sessions/s", "70"}}) {
      v1::CreateArrayRequest create;
      create.set_parent(parent);
      create.set_array_id(id);
      create.mutable_spec()->set_data_type(v1::DATA_TYPE_FLOAT32);
      create.mutable_spec()->add_shape(4);
      ASSERT_TRUE(rpc_->Call("ArrayService/CreateArray", create).ok());
    }
    v1::CreateModuleRequest module;
    module.set_module_id("m");
    module.mutable_module()->set_source("extern \"C\" __global__ void k(int* x, float f) {}");
    const Outcome made = rpc_->Call("KernelService/CreateModule", module);
    ASSERT_TRUE(made.ok()) << made.ToString();
  }
  static void TearDownTestSuite() {
    rpc_.reset();
    daemon_.reset();
  }

  static std::string Encode(const std::string& method, const std::string& text) {
    const std::string name = "stride.v1." + Replace(method, "/", ".");
    const auto* descriptor =
        google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name);
    if (descriptor == nullptr) throw std::runtime_error("no method " + name);
    google::protobuf::DynamicMessageFactory factory;
    std::unique_ptr<google::protobuf::Message> message(
        factory.GetPrototype(descriptor->input_type())->New());
    if (!google::protobuf::TextFormat::ParseFromString(Expand(text), message.get()))
      throw std::runtime_error("row does not parse: " + Expand(text));
    return message->SerializeAsString();
  }

  static inline std::unique_ptr<Daemon> daemon_;
  static inline std::unique_ptr<Rpc> rpc_;
};

void ExpectWellFormed(const Outcome& outcome) {
  EXPECT_EQ(outcome.num_error_infos, 1) << outcome.ToString();
  EXPECT_EQ(outcome.domain, "stride.v1") << outcome.ToString();
  // Internal details stay hidden.
  for (const char* secret : {"/tmp/", "0x", "std::", "server/", "__stride"})
    EXPECT_EQ(outcome.message.find(secret), std::string::npos) << outcome.ToString();
}

TEST_P(ErrorsTest, MistakeGivesTheExpectedError) {
  const Row& row = GetParam();
  if (std::string(row.name).starts_with("ptx")) STRIDE_NEEDS_CPU("a GPU takes PTX");
  std::vector<std::string> messages;
  for (const auto& text : row.messages) messages.push_back(Encode(row.method, text));
  const Outcome outcome = rpc_->Call(row.method, messages);
  EXPECT_EQ(outcome.code, row.code) << outcome.ToString();
  EXPECT_EQ(outcome.reason, row.reason) << outcome.ToString();
  EXPECT_THAT(outcome.message, HasSubstr(row.text)) << outcome.ToString();
  ExpectWellFormed(outcome);
  if (row.code == kInvalid) {
    ASSERT_FALSE(outcome.violations.empty()) << outcome.ToString();
    EXPECT_EQ(outcome.violations[0].field, row.field) << outcome.ToString();
    EXPECT_FALSE(outcome.violations[0].description.empty());
  }
  if (row.code == kNotFound) {
    EXPECT_FALSE(outcome.resource.empty()) << outcome.ToString();
  }
}

constexpr char kRun[] = "ComputeService/Run";
constexpr char kPut[] = "ArrayService/PutArray";
constexpr char kModule[] = "KernelService/CreateModule";
constexpr char kK[] =
    "operation { kernel_launch { module: \"tenants/default/modules/m\" entry: \"k\" ";
constexpr char kGoodArguments[] =
    " arguments { new_array { spec { data_type: DATA_TYPE_INT32 shape: 1 } output { inline_result: "
    "true } } }"
    " arguments { scalar { float_value: 1 } } ";

std::string K(const std::string& rest) { return kK + rest + "} }"; }

const std::vector<Row>& ShapesAndTypes() {
  static const std::vector<Row> rows = {
      {"broadcast",
       kRun,
       {"operation { ufunc { function: 'add' inputs { @F2 } inputs { @F3 } } @OUT }"},
       kInvalid,
       "SHAPE_MISMATCH",
       "operation.ufunc.inputs",
       "(2,) (3,)"},
      {"expression_broadcast",
       kRun,
       {"operation { expression { text: 'x+y' inputs { key: 'x' value { @F2 } } inputs { key: 'y' "
        "value { @F3 } } } @OUT }"},
       kInvalid,
       "SHAPE_MISMATCH",
       "operation.expression.inputs",
       "do not broadcast"},
      {"matmul_shapes",
       kRun,
       {"operation { matmul { left { @F23 } right { @F2 } } @OUT }"},
       kInvalid,
       "SHAPE_MISMATCH",
       "operation.matmul.right",
       "(2, 3) and (2,)"},
      {"matmul_scalar",
       kRun,
       {"operation { matmul { left { @F23 } right { scalar { int_value: 2 } } } @OUT }"},
       kInvalid,
       "INVALID_FIELD",
       "operation.matmul.right",
       "needs an array"},
      {"type",
       kRun,
       {"operation { ufunc { function: 'bitwise_and' inputs { @F2 } inputs { @F2 } } @OUT }"},
       kInvalid,
       "DATA_TYPE_MISMATCH",
       "operation.ufunc.inputs",
       "float32"},
      {"complex_order",
       kRun,
       {"operation { ufunc { function: 'floor' inputs { @C2 } } @OUT }"},
       kInvalid,
       "DATA_TYPE_MISMATCH",
       "operation.ufunc.inputs",
       "complex64"},
      {"reduction_type",
       kRun,
       {"operation { reduction { function: FUNCTION_SUM input { @F3 } data_type: DATA_TYPE_INT32 } "
        "@OUT }"},
       kInvalid,
       "DATA_TYPE_MISMATCH",
       "operation.reduction.data_type",
       "sum of float32 as int32"},
      {"axis_range",
       kRun,
       {"operation { reduction { function: FUNCTION_SUM input { @F23 } axes: 2 } @OUT }"},
       kInvalid,
       "INVALID_FIELD",
       "operation.reduction.axes",
       "out of range"},
      {"axis_twice",
       kRun,
       {"operation { reduction { function: FUNCTION_SUM input { @F23 } axes: [0, -2] } @OUT }"},
       kInvalid,
       "INVALID_FIELD",
       "operation.reduction.axes",
       "twice"},
      {"no_function",
       kRun,
       {"operation { reduction { input { @F23 } } @OUT }"},
       kInvalid,
       "INVALID_FIELD",
       "operation.reduction.function",
       "no such reduction"},
      {"empty_min",
       kRun,
       {"operation { reduction { function: FUNCTION_MIN input { @E } } @OUT }"},
       kInvalid,
       "SHAPE_MISMATCH",
       "operation.reduction.input",
       "empty"},
      {"reshape",
       kRun,
       {"operation { view { input { @F23 } steps { reshape { shape: 4 } } } @OUT }"},
       kInvalid,
       "SHAPE_MISMATCH",
       "operation.view.steps[0].reshape.shape",
       "(2, 3)"},
      {"index",
       kRun,
       {"operation { view { input { @F3 } steps { slice { start: 3 index: true } } } @OUT }"},
       kInvalid,
       "INVALID_FIELD",
       "operation.view.steps[0].slice.start",
       "out of bounds"},
      {"zero_step",
       kRun,
       {"operation { view { input { @F3 } steps { slice { step: 0 } } } @OUT }"},
       kInvalid,
       "INVALID_FIELD",
       "operation.view.steps[0].slice.step",
       "zero"},
      {"existing_shape",
       kRun,
       {"session: 'sessions/s' operation { ufunc { function: 'negative' inputs { @F3 } } outputs { "
        "handle: 7 existing: true } }"},
       kInvalid,
       "SHAPE_MISMATCH",
       "operation.outputs[0]",
       "(4,)"},
      {"existing_type",
       kRun,
       {"session: 'sessions/s' operation { ufunc { function: 'add' inputs { handle: 70 } inputs { "
        "scalar { complex_value { imaginary: 1 } } } } outputs { handle: 70 existing: true } }"},
       kInvalid,
       "DATA_TYPE_MISMATCH",
       "operation.outputs[0]",
       "complex64"},
  };
  return rows;
}

const std::vector<Row>& CountsAndNames() {
  static const std::vector<Row> rows = {
      {"inputs",
       kRun,
       {"operation { ufunc { function: 'add' inputs { @F2 } } @OUT }"},
       kInvalid,
       "ARGUMENT_COUNT",
       "operation.ufunc.inputs",
       "add"},
      {"outputs",
       kRun,
       {"operation { ufunc { function: 'negative' inputs { @F2 } } @OUT @OUT }"},
       kInvalid,
       "ARGUMENT_COUNT",
       "operation.outputs",
       "one result"},
      {"no_outputs",
       kRun,
       {"operation { ufunc { function: 'negative' inputs { @F2 } } }"},
       kInvalid,
       "ARGUMENT_COUNT",
       "operation.outputs",
       "one result"},
      {"kernel_arguments",
       kRun,
       {K(" arguments { scalar { int_value: 1 } }")},
       kInvalid,
       "ARGUMENT_COUNT",
       "operation.kernel_launch.arguments",
       "takes 2, not 1"},
      {"no_operation", kRun, {""}, kInvalid, "INVALID_FIELD", "operation", "empty"},
      {"ufunc",
       kRun,
       {"operation { ufunc { function: 'cosinus' inputs { @F2 } } @OUT }"},
       kInvalid,
       "UNKNOWN_FUNCTION",
       "operation.ufunc.function",
       "cosinus"},
      {"suggestion",
       kRun,
       {"operation { ufunc { function: 'substract' inputs { @F2 } inputs { @F2 } } @OUT }"},
       kInvalid,
       "UNKNOWN_FUNCTION",
       "operation.ufunc.function",
       "did you mean subtract?"},
      {"two_outputs",
       kRun,
       {"operation { ufunc { function: 'divmod' inputs { @F2 } inputs { @F2 } } @OUT }"},
       kInvalid,
       "ARGUMENT_COUNT",
       "operation.outputs",
       "2 results"},
      {"handle",
       kRun,
       {"session: 'sessions/s' operation { ufunc { function: 'cos' inputs { handle: 99 } } @OUT }"},
       kNotFound,
       "ARRAY_NOT_FOUND",
       "",
       "sessions/s/arrays/99"},
      {"handle_without_session",
       kRun,
       {"operation { ufunc { function: 'cos' inputs { handle: 99 } } @OUT }"},
       kInvalid,
       "INVALID_FIELD",
       "operation.ufunc.inputs[0].handle",
       "needs the request's session"},
      {"name",
       kRun,
       {"operation { ufunc { function: 'cos' inputs { name: 'tenants/default/arrays/none' } } @OUT "
        "}"},
       kNotFound,
       "ARRAY_NOT_FOUND",
       "",
       "tenants/default/arrays/none"},
      {"other_tenant",
       kRun,
       {"operation { ufunc { function: 'cos' inputs { name: 'tenants/else/arrays/none' } } @OUT }"},
       kNotFound,
       "ARRAY_NOT_FOUND",
       "",
       "tenants/else/arrays/none"},
      {"malformed_name",
       kRun,
       {"operation { ufunc { function: 'cos' inputs { name: '../../etc/passwd' } } @OUT }"},
       kInvalid,
       "INVALID_FIELD",
       "operation.ufunc.inputs[0].name",
       "not a resource name"},
      {"empty_operand",
       kRun,
       {"operation { ufunc { function: 'cos' inputs { } } @OUT }"},
       kInvalid,
       "INVALID_FIELD",
       "operation.ufunc.inputs[0].source",
       "an operand is"},
      {"session",
       kRun,
       {"session: 'sessions/none' operation { ufunc { function: 'cos' inputs { handle: 1 } } @OUT "
        "}"},
       kNotFound,
       "SESSION_NOT_FOUND",
       "",
       "sessions/none"},
      {"session_name",
       kRun,
       {"session: 'none' operation { ufunc { function: 'cos' inputs { handle: 1 } } @OUT }"},
       kInvalid,
       "INVALID_FIELD",
       "session",
       "sessions/{session}"},
      {"device",
       kRun,
       {"operation { ufunc { function: 'cos' inputs { @F2 } } @OUT device: 'devices/cpu:9' }"},
       kNotFound,
       "DEVICE_NOT_FOUND",
       "",
       "devices/cpu:9"},
      {"module",
       kRun,
       {"operation { kernel_launch { module: 'tenants/default/modules/none' entry: 'k' } }"},
       kNotFound,
       "MODULE_NOT_FOUND",
       "",
       "tenants/default/modules/none"},
      {"entry",
       kRun,
       {"operation { kernel_launch { module: 'tenants/default/modules/m' entry: 'kk' } }"},
       kInvalid,
       "UNKNOWN_ENTRY",
       "operation.kernel_launch.entry",
       "kk"},
      {"no_entry",
       kRun,
       {"operation { kernel_launch { module: 'tenants/default/modules/m' } }"},
       kInvalid,
       "INVALID_FIELD",
       "operation.kernel_launch.entry",
       "missing"},
      {"output_taken",
       kRun,
       {"session: 'sessions/s' operation { ufunc { function: 'cos' inputs { @F2 } } outputs { "
        "handle: 7 } }"},
       kExists,
       "ALREADY_EXISTS",
       "",
       "sessions/s/arrays/7"},
      {"output_zero",
       kRun,
       {"session: 'sessions/s' operation { ufunc { function: 'cos' inputs { @F2 } } outputs { "
        "handle: 0 } }"},
       kInvalid,
       "INVALID_FIELD",
       "operation.outputs[0].handle",
       "not 0"},
      {"output_other_tenant",
       kRun,
       {"operation { ufunc { function: 'cos' inputs { @F2 } } outputs { name: "
        "'tenants/else/arrays/x' } }"},
       kNotFound,
       "ARRAY_NOT_FOUND",
       "",
       "tenants/else"},
      {"get_array",
       "ArrayService/GetArray",
       {"name: 'tenants/default/arrays/none'"},
       kNotFound,
       "ARRAY_NOT_FOUND",
       "",
       "none"},
      {"get_array_name",
       "ArrayService/GetArray",
       {"name: 'arrays/none'"},
       kInvalid,
       "INVALID_FIELD",
       "name",
       "tenants/{tenant}/arrays/{id}"},
      {"handle_sign",
       "ArrayService/GetArray",
       {"name: 'sessions/s/arrays/+7'"},
       kInvalid,
       "INVALID_FIELD",
       "name",
       "not a resource name"},
      {"fetch_array",
       "ArrayService/FetchArray",
       {"name: 'sessions/s/arrays/8'"},
       kNotFound,
       "ARRAY_NOT_FOUND",
       "",
       "sessions/s/arrays/8"},
      {"delete_array",
       "ArrayService/DeleteArray",
       {"name: 'sessions/s/arrays/8'"},
       kNotFound,
       "ARRAY_NOT_FOUND",
       "",
       "sessions/s/arrays/8"},
      {"list_parent",
       "ArrayService/ListArrays",
       {"parent: 'everything'"},
       kInvalid,
       "INVALID_FIELD",
       "parent",
       "expected"},
      {"list_size",
       "ArrayService/ListArrays",
       {"parent: 'sessions/s' page_size: 5000"},
       kInvalid,
       "INVALID_FIELD",
       "page_size",
       "1000"},
      {"list_jobs_size",
       "JobService/ListJobs",
       {"page_size: -1"},
       kInvalid,
       "INVALID_FIELD",
       "page_size",
       "-1"},
      {"list_modules_size",
       "KernelService/ListModules",
       {"page_size: -1"},
       kInvalid,
       "INVALID_FIELD",
       "page_size",
       "-1"},
      {"list_devices_size",
       "DeviceService/ListDevices",
       {"page_size: -1"},
       kInvalid,
       "INVALID_FIELD",
       "page_size",
       "-1"},
      {"list_token",
       "ArrayService/ListArrays",
       {"parent: 'sessions/s' page_token: 'zzz'"},
       kInvalid,
       "INVALID_FIELD",
       "page_token",
       ""},
      {"get_session",
       "SessionService/GetSession",
       {"name: 'sessions/none'"},
       kNotFound,
       "SESSION_NOT_FOUND",
       "",
       "sessions/none"},
      {"session_taken",
       "SessionService/CreateSession",
       {"session_id: 's'"},
       kExists,
       "ALREADY_EXISTS",
       "",
       "s"},
      {"session_id",
       "SessionService/CreateSession",
       {"session_id: 'No Good'"},
       kInvalid,
       "INVALID_FIELD",
       "session_id",
       "must match"},
      {"session_ttl",
       "SessionService/CreateSession",
       {"ttl { seconds: 90000 }"},
       kInvalid,
       "INVALID_FIELD",
       "ttl",
       "at most"},
      {"get_device",
       "DeviceService/GetDevice",
       {"name: 'devices/cpu:7'"},
       kNotFound,
       "DEVICE_NOT_FOUND",
       "",
       "devices/cpu:7"},
      {"watch_device",
       "DeviceService/WatchDevices",
       {"names: 'devices/cpu:7'"},
       kNotFound,
       "DEVICE_NOT_FOUND",
       "",
       "devices/cpu:7"},
      {"watch_interval",
       "DeviceService/WatchDevices",
       {"interval { nanos: 1000 }"},
       kInvalid,
       "INVALID_FIELD",
       "interval",
       "50"},
      {"get_module",
       "KernelService/GetModule",
       {"name: 'tenants/default/modules/none'"},
       kNotFound,
       "MODULE_NOT_FOUND",
       "",
       "none"},
      {"get_job",
       "JobService/GetJob",
       {"name: 'tenants/default/jobs/none'"},
       kNotFound,
       "JOB_NOT_FOUND",
       "",
       "none"},
      {"cancel_job",
       "JobService/CancelJob",
       {"name: 'tenants/default/jobs/none'"},
       kNotFound,
       "JOB_NOT_FOUND",
       "",
       "none"},
      {"watch_job",
       "JobService/WatchJob",
       {"name: 'jobs'"},
       kInvalid,
       "INVALID_FIELD",
       "name",
       "tenants/{tenant}/jobs/{id}"},
      {"empty_job",
       "JobService/CreateJob",
       {""},
       kInvalid,
       "ARGUMENT_COUNT",
       "job.operations",
       "from 1 to"},
      {"job_operation",
       "JobService/CreateJob",
       {"job { operations { ufunc { function: 'csc' inputs { @F2 } } outputs { handle: 1 } } }"},
       kInvalid,
       "UNKNOWN_FUNCTION",
       "job.operations[0].ufunc.function",
       "csc"},
      {"job_inline",
       "JobService/CreateJob",
       {"job { operations { ufunc { function: 'cos' inputs { @F2 } } @OUT } }"},
       kInvalid,
       "INVALID_FIELD",
       "job.operations[0].outputs",
       "inline"},
  };
  return rows;
}

const std::vector<Row>& Sizes() {
  static const std::vector<Row> rows = {
      {"create_size",
       "ArrayService/CreateArray",
       {"parent: 'tenants/default' array_id: 'big' spec { data_type: DATA_TYPE_FLOAT64 shape: "
        "1000000000 }"},
       kInvalid,
       "SIZE_LIMIT",
       "spec.shape",
       "larger than allowed"},
      {"create_overflow",
       "ArrayService/CreateArray",
       {"parent: 'tenants/default' array_id: 'big' spec { data_type: DATA_TYPE_INT8 shape: "
        "[9223372036854775807, 9223372036854775807] }"},
       kInvalid,
       "SIZE_LIMIT",
       "spec.shape",
       "larger than allowed"},
      {"create_negative",
       "ArrayService/CreateArray",
       {"parent: 'tenants/default' array_id: 'big' spec { data_type: DATA_TYPE_INT8 shape: [3, -1] "
        "}"},
       kInvalid,
       "INVALID_FIELD",
       "spec.shape[1]",
       "not negative"},
      {"create_rank",
       "ArrayService/CreateArray",
       {"parent: 'tenants/default' array_id: 'big' spec { data_type: DATA_TYPE_INT8 shape: "
        "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] }"},
       kInvalid,
       "SIZE_LIMIT",
       "spec.shape",
       "too many axes"},
      {"create_type",
       "ArrayService/CreateArray",
       {"parent: 'tenants/default' array_id: 'big' spec { shape: 3 }"},
       kInvalid,
       "INVALID_FIELD",
       "spec.data_type",
       "not a data type"},
      {"create_id",
       "ArrayService/CreateArray",
       {"parent: 'tenants/default' array_id: 'a/b' spec { data_type: DATA_TYPE_INT8 shape: 3 }"},
       kInvalid,
       "INVALID_FIELD",
       "array_id",
       "must match"},
      {"create_ttl",
       "ArrayService/CreateArray",
       {"parent: 'sessions/s' array_id: '12' spec { data_type: DATA_TYPE_INT8 shape: 3 } ttl { "
        "seconds: 3 }"},
       kInvalid,
       "INVALID_FIELD",
       "ttl",
       "only named arrays"},
      {"result_size",
       kRun,
       {"operation { creation { fill { spec { data_type: DATA_TYPE_FLOAT64 shape: 1000000000 } } } "
        "outputs { name: 'tenants/default/arrays/big' } }"},
       kInvalid,
       "SIZE_LIMIT",
       "operation.outputs",
       "larger than an array may be"},
      {"result_rank_overflow",
       kRun,
       {"operation { creation { linear_space { start { int_value: 0 } stop { int_value: 1 } count: "
        "9223372036854775807 } } outputs { name: 'tenants/default/arrays/big' } }"},
       kInvalid,
       "SIZE_LIMIT",
       "operation.outputs[0]",
       "63 bits"},
      {"inline_result_size",
       kRun,
       {"operation { creation { fill { spec { data_type: DATA_TYPE_FLOAT64 shape: 1000000 } } } "
        "@OUT }"},
       kInvalid,
       "SIZE_LIMIT",
       "operation.outputs",
       "does not fit one message"},
      {"inline_mismatch",
       kRun,
       {"operation { ufunc { function: 'cos' inputs { inline_array { spec { data_type: "
        "DATA_TYPE_FLOAT32 shape: 3 } data: 'abc' } } } @OUT }"},
       kInvalid,
       "SIZE_MISMATCH",
       "operation.ufunc.inputs[0].inline_array.data",
       "Declared: 12, sent: 3"},
      {"put_short",
       kPut,
       {"header { parent: 'sessions/s' array_id: '21' spec { data_type: DATA_TYPE_INT8 shape: 10 } "
        "}",
        "data: 'abc'"},
       kInvalid,
       "SIZE_MISMATCH",
       "data",
       ""},
      {"put_long",
       kPut,
       {"header { parent: 'sessions/s' array_id: '22' spec { data_type: DATA_TYPE_INT8 shape: 2 } "
        "}",
        "data: 'abc'"},
       kInvalid,
       "SIZE_MISMATCH",
       "data",
       ""},
      {"put_no_header", kPut, {"data: 'abc'"}, kInvalid, "INVALID_FIELD", "header", ""},
      {"put_nothing", kPut, {}, kInvalid, "INVALID_FIELD", "header", "missing"},
      {"put_two_headers",
       kPut,
       {"header { parent: 'sessions/s' array_id: '23' spec { data_type: DATA_TYPE_INT8 shape: 3 } "
        "}",
        "header { parent: 'sessions/s' array_id: '23' spec { data_type: DATA_TYPE_INT8 shape: 3 } "
        "}"},
       kInvalid,
       "INVALID_FIELD",
       "header",
       "first message"},
      {"put_range",
       kPut,
       {"header { parent: 'sessions/s' array_id: '24' spec { data_type: DATA_TYPE_INT8 shape: 3 } "
        "range { begin: 2 end: 4 } }"},
       kInvalid,
       "INVALID_FIELD",
       "header.range",
       "within the array"},
      {"put_parent",
       kPut,
       {"header { parent: 'me' array_id: '24' spec { data_type: DATA_TYPE_INT8 shape: 3 } }"},
       kInvalid,
       "INVALID_FIELD",
       "header.parent",
       "not a resource name"},
      {"put_spec",
       kPut,
       {"header { parent: 'sessions/s' array_id: '24' spec { data_type: DATA_TYPE_INT8 shape: "
        "3000000000 } }"},
       kInvalid,
       "SIZE_LIMIT",
       "header.spec.shape",
       "larger than allowed"},
      {"put_device",
       kPut,
       {"header { parent: 'sessions/s' array_id: '24' device: 'devices/gpu' spec { data_type: "
        "DATA_TYPE_INT8 shape: 3 } }"},
       kNotFound,
       "DEVICE_NOT_FOUND",
       "",
       "devices/gpu"},
      {"put_exists",
       kPut,
       {"header { parent: 'sessions/s' array_id: '7' spec { data_type: DATA_TYPE_FLOAT32 shape: 4 "
        "} }"},
       kExists,
       "ALREADY_EXISTS",
       "",
       "sessions/s/arrays/7"},
      {"put_overwrite_spec",
       kPut,
       {"header { parent: 'sessions/s' array_id: '7' overwrite: true spec { data_type: "
        "DATA_TYPE_FLOAT32 shape: 5 } }"},
       kInvalid,
       "SHAPE_MISMATCH",
       "header.spec",
       "same dtype and shape"},
      {"fetch_range",
       "ArrayService/FetchArray",
       {"name: 'sessions/s/arrays/7' range { begin: 0 end: 17 }"},
       kInvalid,
       "INVALID_FIELD",
       "range",
       "16"},
      {"fetch_chunk",
       "ArrayService/FetchArray",
       {"name: 'sessions/s/arrays/7' chunk_bytes: 99999999"},
       kInvalid,
       "SIZE_LIMIT",
       "chunk_bytes",
       "4194304"},
  };
  return rows;
}

const std::vector<Row>& Texts() {
  auto expression = [](const std::string& text) {
    return "operation { expression { text: '" + text +
           "' inputs { key: 'x' value { @F2 } } } @OUT }";
  };
  static const std::vector<Row> rows = {
      {"syntax",
       kRun,
       {expression("x + * 2")},
       kInvalid,
       "EXPRESSION_SYNTAX",
       "operation.expression.text",
       "at byte 4"},
      {"open",
       kRun,
       {expression("cos(x")},
       kInvalid,
       "EXPRESSION_SYNTAX",
       "operation.expression.text",
       "at byte 5"},
      {"empty_text",
       kRun,
       {expression("")},
       kInvalid,
       "EXPRESSION_SYNTAX",
       "operation.expression.text",
       "at byte 0"},
      {"character",
       kRun,
       {expression("x $ 2")},
       kInvalid,
       "EXPRESSION_SYNTAX",
       "operation.expression.text",
       "at byte 2"},
      {"call",
       kRun,
       {expression("koss(x)")},
       kInvalid,
       "UNKNOWN_FUNCTION",
       "operation.expression.text",
       "koss"},
      {"depth",
       kRun,
       {expression(std::string(5000, '(') + "x" + std::string(5000, ')'))},
       kInvalid,
       "SIZE_LIMIT",
       "operation.expression.text",
       "nested too deeply"},
      {"compile",
       kModule,
       {"module { source: 'extern \"C\" __global__ void k(int* x) { x[0] = undeclared; }' }"},
       kInvalid,
       "COMPILE_FAILED",
       "module.source",
       "undeclared"},
      {"compile_include",
       kModule,
       {"module { source: '#include \"/etc/passwd\"\\nextern \"C\" __global__ void k() {}' }"},
       kInvalid,
       "COMPILE_FAILED",
       "module.source",
       ""},
      {"module_entry",
       kModule,
       {"module { source: 'extern \"C\" __global__ void k() {}' entries: 'other' }"},
       kInvalid,
       "UNKNOWN_ENTRY",
       "module.entries[0]",
       "`other`. The code has: k"},
      {"module_entries",
       kModule,
       {"module { source: 'namespace a { template <typename T> __global__ void scale(T* x) {} } "
        "__global__ void k() {}' entries: 'k' entries: 'a::scale<float>' entries: 'a::scal<int>' "
        "}"},
       kInvalid,
       "UNKNOWN_ENTRY",
       "module.entries[2]",
       "`a::scal<int>`. The code has: k, a::scale"},
      {"module_instance",
       kModule,
       {"module { source: 'template <typename T> __global__ void scale(T* x) {}' entries: "
        "'scale<nothing>' }"},
       kInvalid,
       "COMPILE_FAILED",
       "module.source",
       "nothing"},
      {"module_in_template",
       kModule,
       {"module { source: 'template <typename T> __global__ void scale(T* x) { x->f(); }' entries: "
        "'scale<int>' }"},
       kInvalid,
       "COMPILE_FAILED",
       "module.source",
       "kernel.cu"},
      {"module_wrong_and_entry",
       kModule,
       {"module { source: '__global__ void k() { undeclared(); }' entries: 'other' }"},
       kInvalid,
       "COMPILE_FAILED",
       "module.source",
       "undeclared"},
      {"launch_entry",
       kRun,
       {"operation { kernel_launch { source: 'extern \"C\" __global__ void k() {}' entry: 'other' "
        "} }"},
       kInvalid,
       "UNKNOWN_ENTRY",
       "operation.kernel_launch.entry",
       "`other`. The code has: k"},
      {"module_id",
       kModule,
       {"module_id: '-' module { source: 'extern \"C\" __global__ void k() {}' }"},
       kInvalid,
       "INVALID_FIELD",
       "module_id",
       "must match"},
      {"module_empty", kModule, {"module { }"}, kInvalid, "INVALID_FIELD", "module.code", ""},
      {"option",
       kModule,
       {"module { source: 'extern \"C\" __global__ void k() {}' options: '-O2' options: '-I/etc' "
        "}"},
       kInvalid,
       "OPTION_NOT_ALLOWED",
       "module.options[1]",
       "-I/etc"},
      {"option_plugin",
       kModule,
       {"module { source: 'extern \"C\" __global__ void k() {}' options: '-fplugin=x.so' }"},
       kInvalid,
       "OPTION_NOT_ALLOWED",
       "module.options[0]",
       "-fplugin=x.so"},
      {"launch_option",
       kRun,
       {"operation { kernel_launch { source: 'extern \"C\" __global__ void k() {}' entry: 'k' "
        "options: '@/etc/passwd' } }"},
       kInvalid,
       "OPTION_NOT_ALLOWED",
       "operation.kernel_launch.options[0]",
       "@/etc/passwd"},
      {"launch_compile",
       kRun,
       {"operation { kernel_launch { source: 'extern \"C\" __global__ void k() { nonsense }' "
        "entry: 'k' } }"},
       kInvalid,
       "COMPILE_FAILED",
       "operation.kernel_launch.source",
       "nonsense"},
      {"block",
       kRun,
       {K(std::string("block { x: 2000 }") + kGoodArguments)},
       kInvalid,
       "SIZE_LIMIT",
       "operation.kernel_launch.block.x",
       "at most 1024"},
      {"block_product",
       kRun,
       {K(std::string("block { x: 64 y: 64 }") + kGoodArguments)},
       kInvalid,
       "SIZE_LIMIT",
       "operation.kernel_launch.block",
       "1024"},
      {"grid",
       kRun,
       {K(std::string("grid { y: 70000 }") + kGoodArguments)},
       kInvalid,
       "SIZE_LIMIT",
       "operation.kernel_launch.grid.y",
       "65535"},
      {"shared",
       kRun,
       {K(std::string("shared_memory_bytes: 1000000") + kGoodArguments)},
       kInvalid,
       "SIZE_LIMIT",
       "operation.kernel_launch.shared_memory_bytes",
       ""},
      {"argument_type",
       kRun,
       {K(" arguments { array { @F2 } } arguments { scalar { float_value: 1 } }")},
       kInvalid,
       "DATA_TYPE_MISMATCH",
       "operation.kernel_launch.arguments[0].array",
       "the array is float32"},
      {"argument_pointer",
       kRun,
       {K(" arguments { scalar { int_value: 1 } } arguments { scalar { float_value: 1 } }")},
       kInvalid,
       "DATA_TYPE_MISMATCH",
       "operation.kernel_launch.arguments[0].scalar",
       "pass an array"},
      {"argument_array",
       kRun,
       {K(" arguments { array { @I3 } } arguments { array { @F2 } }")},
       kInvalid,
       "DATA_TYPE_MISMATCH",
       "operation.kernel_launch.arguments[1].array",
       "takes no pointer"},
      {"argument_loss",
       kRun,
       {K(" arguments { array { @I3 } } arguments { scalar { float_value: 1e300 } }")},
       kInvalid,
       "DATA_TYPE_MISMATCH",
       "operation.kernel_launch.arguments[1].scalar",
       "does not fit"},
      {"argument_raw",
       kRun,
       {K(" arguments { array { @I3 } } arguments { raw: 'abc' }")},
       kInvalid,
       "SIZE_MISMATCH",
       "operation.kernel_launch.arguments[1].raw",
       "exact size"},
      {"argument_empty",
       kRun,
       {K(" arguments { array { @I3 } } arguments { }")},
       kInvalid,
       "INVALID_FIELD",
       "operation.kernel_launch.arguments[1]",
       "empty"},
      {"ptx",
       kRun,
       {"operation { kernel_launch { ptx: '.version 8.0' entry: 'k' } }"},
       kUnimplemented,
       "NOT_IMPLEMENTED",
       "",
       "cuda"},
      {"ptx_module",
       kModule,
       {"module { ptx: '.version 8.0' }"},
       kUnimplemented,
       "NOT_IMPLEMENTED",
       "",
       "cuda"},
  };
  return rows;
}

std::string NameOf(const ::testing::TestParamInfo<Row>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(ShapesAndTypes, ErrorsTest, ::testing::ValuesIn(ShapesAndTypes()), NameOf);
INSTANTIATE_TEST_SUITE_P(CountsAndNames, ErrorsTest, ::testing::ValuesIn(CountsAndNames()), NameOf);
INSTANTIATE_TEST_SUITE_P(Sizes, ErrorsTest, ::testing::ValuesIn(Sizes()), NameOf);
INSTANTIATE_TEST_SUITE_P(Texts, ErrorsTest, ::testing::ValuesIn(Texts()), NameOf);

// Bytes that form no message.
class MalformedTest : public ErrorsTest {};

TEST_F(MalformedTest, PutArrayOfInvalidBytes) {
  const std::vector<std::string> bytes = {
      std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11),
      std::string("\x0a\x7f\x01", 3), std::string(1, '\0'),
      std::string("\x12\xff\xff\xff\xff\x0f", 6), std::string(5000, '\x0a')};
  for (const std::string& message : bytes) {
    const Outcome outcome = rpc_->Call(kPut, {message});
    EXPECT_EQ(outcome.code, kInvalid) << outcome.ToString();
    EXPECT_EQ(outcome.reason, "INVALID_FIELD") << outcome.ToString();
    ExpectWellFormed(outcome);
  }
}

TEST_F(MalformedTest, MessageAboveTheLimit) {
  v1::PutArrayRequest header, body;
  header.mutable_header()->set_parent("sessions/s");
  header.mutable_header()->set_array_id("31");
  header.mutable_header()->mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
  header.mutable_header()->mutable_spec()->add_shape(64 << 20);
  body.set_data(std::string(64 << 20, 'x'));
  const Outcome outcome = rpc_->Call(kPut, {header.SerializeAsString(), body.SerializeAsString()});
  // gRPC itself refuses it before any of our code sees it.
  EXPECT_EQ(outcome.code, 8) << outcome.ToString();
}

TEST_F(MalformedTest, DaemonStillServes) {
  EXPECT_TRUE(rpc_->Call("DeviceService/ListDevices", v1::ListDevicesRequest()).ok());
}

// Mistakes within a stream of commands are reported per command; the stream continues.
TEST_F(MalformedTest, ExecuteReportsEachCommand) {
  v1::ExecuteRequest request;
  google::protobuf::TextFormat::ParseFromString(Expand(R"(
    session: 'sessions/s'
    commands { id: 1 operation { ufunc { function: 'add' inputs { @F2 } inputs { @F3 } } outputs { handle: 41 } } }
    commands { id: 2 operation { ufunc { function: 'negative' inputs { handle: 41 } } outputs { handle: 42 } } }
    commands { id: 3 operation { ufunc { function: 'negative' inputs { @F2 } } outputs { handle: 43 } } }
    commands { id: 4 fetch { handle: 42 } }
    commands { id: 5 fetch { handle: 43 } }
    commands { id: 6 operation { ufunc { function: 'negative' inputs { @F2 } } outputs { inline_result: true } } }
    commands { id: 7 }
    commands { id: 8 synchronize {} }
    commands { id: 9 fetch { handle: 999 } }
    commands { id: 10 operation {
      creation { fill { spec { data_type: DATA_TYPE_FLOAT64 shape: 1000000 } } } outputs { inline_result: true } } }
    commands { id: 11 operation {
      gather { input { @F2 }
        indices { inline_array { spec { data_type: DATA_TYPE_INT32 shape: 1 } data: '\005\000\000\000' } } }
      outputs { inline_result: true } } }
  )"),
                                                &request);
  const Outcome outcome = rpc_->Call("ComputeService/Execute", request);
  ASSERT_TRUE(outcome.ok()) << outcome.ToString();
  std::map<uint64_t, v1::CommandResult> results;
  std::vector<uint64_t> order;
  for (const std::string& bytes : outcome.replies) {
    v1::ExecuteResponse response;
    ASSERT_TRUE(response.ParseFromString(bytes));
    for (const auto& result : response.results()) {
      results[result.id()] = result;
      order.push_back(result.id());
    }
  }
  EXPECT_THAT(order, ::testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  const std::map<uint64_t, std::string> reasons = {{1, "SHAPE_MISMATCH"},
                                                   {2, "SHAPE_MISMATCH"},
                                                   {3, ""},
                                                   {4, "SHAPE_MISMATCH"},
                                                   {5, ""},
                                                   {6, ""},
                                                   {7, "INVALID_FIELD"},
                                                   {8, "SHAPE_MISMATCH"},
                                                   {9, "ARRAY_NOT_FOUND"},
                                                   {10, "SIZE_LIMIT"},
                                                   {11, "DATA_OUT_OF_RANGE"}};
  for (const auto& [id, reason] : reasons) {
    SCOPED_TRACE(id);
    const Outcome reported = ReadStatus(results[id].status().SerializeAsString());
    EXPECT_EQ(reported.reason, reason) << reported.ToString();
    if (!reason.empty()) ExpectWellFormed(reported);
  }
  EXPECT_EQ(results[5].results(0).inline_array().data().size(), 8u);
}

}  // namespace
}  // namespace stride::testing
