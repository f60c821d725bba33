// Features of client kernel launches beyond plain arguments: values of variables, structs that
// contain arrays, cooperative grids.

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "gmock/gmock.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/function_service.pb.h"
#include "stride/v1/job_service.pb.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/load.h"
#include "tests/support/daemon/rpc.h"

namespace stride::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kTable[] = R"(
__constant__ float table[4] = {1, 2, 3, 4};
__device__ int scale;
extern "C" __global__ void apply(float* out) {
  out[threadIdx.x] = table[threadIdx.x] * (scale == 0 ? 1 : scale);
}
extern "C" __global__ void slow(float* out, long long count) {
  volatile float x = 0;
  for (long long i = 0; i < count; ++i) x = x + 1;
  out[threadIdx.x] = table[threadIdx.x];
}
)";

KernelOptions Apply(std::vector<GlobalValue> globals = {}) {
  KernelOptions options;
  options.code = kTable;
  options.entry = "apply";
  options.block = {4};
  options.arguments = {KernelArgument::Out({DataType::kFloat32, {4}})};
  options.globals = std::move(globals);
  return options;
}

class KernelTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    daemon_ = std::make_unique<Daemon>(std::vector<std::string>{}, Devices{.count = 2});
  }
  static void TearDownTestSuite() { daemon_.reset(); }
  std::vector<float> Values(const KernelOptions& options) {
    auto out = client_.Kernel(options);
    return Get<float>(client_, out.at(0));
  }
  Error Failure(const KernelOptions& options) {
    auto out = client_.Kernel(options);
    return MustFail(client_.Fetch<float>(out.at(0)));
  }

  static inline std::unique_ptr<Daemon> daemon_;
  Client client_ = daemon_->Connect();
};

// A launch has its own values, on whichever device and worker it runs.
TEST_F(KernelTest, GlobalsArePartOfTheLaunch) {
  Array table = Must(client_.Put<float>({10, 20, 30, 40}, {4}));
  const GlobalValue set{.name = "table", .value = table}, twice{.name = "scale", .value = 2};
  const GlobalValue part{.name = "table", .raw = std::string("\0\0\x80\x3f\0\0\0\x40", 8)};
  for (const Device& device : Must(client_.ListDevices())) {
    if (device.kind != DeviceKind()) continue;
    auto run = [&](std::vector<GlobalValue> globals) {
      return Get<float>(
          client_,
          client_.Compute(Operation::Kernel(Apply(std::move(globals))).OnDevice(device.name)));
    };
    EXPECT_THAT(run({set}), ElementsAre(10, 20, 30, 40));
    EXPECT_THAT(run({}), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(run({twice, set}), ElementsAre(20, 40, 60, 80));
    EXPECT_THAT(run({part}), ElementsAre(1, 2, 3, 4));
  }
  EXPECT_THAT(Get<float>(client_, table), ElementsAre(10, 20, 30, 40));
}

TEST_F(KernelTest, ModulesHaveGlobals) {
  const Module module = Must(client_.CreateModule(
      {.code = kTable, .entries = {"apply"}, .globals = {"table"}, .id = "tables"}));
  ASSERT_FALSE(module.globals.empty());
  for (const GlobalInfo& global : module.globals) {
    EXPECT_EQ(global.name, "table");
    EXPECT_EQ(global.size_bytes, 16u);
    EXPECT_TRUE(global.constant);
    EXPECT_EQ(global.data_type, DataType::kFloat32);
  }
  KernelOptions launch = Apply({{.name = "table", .value = 7.5}});
  launch.code = module.name;
  launch.code_kind = CodeKind::kModule;
  EXPECT_THAT(Values(launch), ElementsAre(7.5, 2, 3, 4));
  launch.globals.clear();
  EXPECT_THAT(Values(launch), ElementsAre(1, 2, 3, 4));
  launch.globals = {{.name = "scale", .value = 2}};
  const Error error = Failure(launch);
  EXPECT_TRUE(IsError(error, Code::kInvalidArgument, "UNKNOWN_ENTRY"));
  EXPECT_THAT(error.ToString(), HasSubstr("It has: table"));
  Must(client_.DeleteModule(module.name));
}

// On the wire 0 is unset, which counts as 1.
TEST_F(KernelTest, ZeroExtentIsRefused) {
  Array out = Must(client_.Put<float>({1, 2, 3, 4}, {4}));
  for (const char* field : {"grid", "block"}) {
    KernelOptions launch = Apply();
    (std::string(field) == "grid" ? launch.grid : launch.block) = {1, 0};
    const Error error = Failure(launch);
    EXPECT_EQ(error.code, Code::kInvalidArgument);
    EXPECT_THAT(error.ToString(), HasSubstr(std::string("kernel_launch.") + field));
    EXPECT_EQ(MustFail(client_.Run(Operation::Kernel(launch))).code, Code::kInvalidArgument);
    EXPECT_EQ(MustFail(client_.CreateJob({.operations = {Operation::Kernel(launch)}})).code,
              Code::kInvalidArgument);
    EXPECT_FALSE(client_.Synchronize());
    EXPECT_TRUE(client_.Synchronize());
    launch.arguments = {out};
    client_.Kernel(launch);
    EXPECT_EQ(MustFail(client_.Synchronize()).code, Code::kInvalidArgument);
  }
  EXPECT_THAT(Get<float>(client_, out), ElementsAre(1, 2, 3, 4));
}

TEST_F(KernelTest, WrongGlobalsAreRefusedAtTheirField) {
  EXPECT_TRUE(IsError(Failure(Apply({{.name = "tabel", .value = 1}})), Code::kInvalidArgument,
                      "UNKNOWN_ENTRY"));
  Array wide = Must(client_.Put<float>({1, 2, 3, 4, 5}, {5}));
  EXPECT_TRUE(IsError(Failure(Apply({{.name = "table", .value = wide}})), Code::kInvalidArgument,
                      "SIZE_MISMATCH"));
  EXPECT_TRUE(IsError(Failure(Apply({{.name = "scale", .value = wide}})), Code::kInvalidArgument,
                      "DATA_TYPE_MISMATCH"));
}

// Work that the daemon had accepted keeps its values over the daemon's death.
TEST(KernelRestartTest, GlobalsOutliveTheDaemon) {
  Daemon daemon({"--supervise"});
  Client client = daemon.Connect();
  Array table = Must(client.Put<float>({10, 20, 30, 40}, {4}));
  KernelOptions slow = Apply({{.name = "table", .value = table}});
  slow.entry = "slow";
  slow.arguments.push_back(KernelArgument(int64_t{300000000}));
  auto first = client.Kernel(slow);
  auto second = client.Kernel(Apply({{.name = "table", .value = table}, {"scale", 3}}));
  Must(second.at(0).Spec());  // both are accepted
  const int times = daemon.TimesReady();
  kill(daemon.ServingPid(), SIGKILL);
  ASSERT_TRUE(daemon.WaitReady(times + 1, std::chrono::seconds(100)));
  auto got = [&](const Array& array) {
    return Must(Persist([&] { return client.Fetch<float>(array); }));
  };
  EXPECT_THAT(got(first.at(0)), ElementsAre(10, 20, 30, 40));
  EXPECT_THAT(got(second.at(0)), ElementsAre(30, 60, 90, 120));
}

TEST_F(KernelTest, StructsHoldArraysAndNewOnes) {
  KernelOptions options;
  options.code = R"(
    struct View { const int* in; int by; int pad; int* out; };
    extern "C" __global__ void add(View view, int* last) {
      view.out[threadIdx.x] = view.in[threadIdx.x] + view.by;
      if (threadIdx.x == 0) *last = view.pad;
    })";
  options.entry = "add";
  options.block = {3};
  Array in = Must(client_.Put<int32_t>({1, 2, 3}, {3}));
  const int32_t by = 10;
  options.arguments = {
      KernelArgument::Struct(
          24, {{.offset = 16, .new_array = ArraySpec{DataType::kInt32, {3}}},
               {.offset = 0, .array = in},
               {.offset = 8, .raw = std::string(reinterpret_cast<const char*>(&by), 4)}}),
      KernelArgument::Out({DataType::kInt32, {}})};
  auto out = client_.Kernel(options);
  ASSERT_THAT(out, SizeIs(2));
  EXPECT_THAT(Get<int32_t>(client_, out[0]), ElementsAre(11, 12, 13));
  EXPECT_THAT(Get<int32_t>(client_, out[1]), ElementsAre(0));
  EXPECT_THAT(Get<int32_t>(client_, in), ElementsAre(1, 2, 3));
  // Results within a struct can also be inline.
  const auto reply = Must(client_.Run(Operation::Kernel(options)));
  EXPECT_THAT(reply.values, SizeIs(2));
  options.arguments[0].struct_size = 16;
  EXPECT_TRUE(IsError(Failure(options), Code::kInvalidArgument, "SIZE_MISMATCH"));
}

TEST_F(KernelTest, TexturesReadArrays) {
  KernelOptions options;
  options.code = R"(
    extern "C" __global__ void read(cudaTextureObject_t image, cudaTextureObject_t numbers, float* out) {
      const int i = threadIdx.x;
      out[i] = 100 * tex1Dfetch<float>(numbers, i) + tex2D<float>(image, (i + 0.5f) / 4, 0.75f);
    })";
  options.entry = "read";
  options.block = {4};
  Array x = Must(client_.Put<float>({1, 2, 3, 4, 5, 6, 7, 8}, {2, 4}));
  options.arguments = {Texture{.array = x,
                               .address_modes = {AddressMode::kWrap, AddressMode::kMirror},
                               .linear_filter = true,
                               .normalized_coordinates = true},
                       Texture{.array = x, .by_number = true, .extents = {3}},
                       KernelArgument::Out({DataType::kFloat32, {4}})};
  EXPECT_THAT(Values(options), ElementsAre(105, 206, 307, 8));
  // A launch reads a texture's array, and waits for its writers.
  client_.Compute(Operation::Ufunc("add", {x, Operand(1.0f)}).ToExisting(x));
  EXPECT_THAT(Values(options), ElementsAre(206, 307, 408, 9));
  options.arguments[1] = Texture{.array = x, .by_number = true, .extents = {9}};
  EXPECT_TRUE(IsError(Failure(options), Code::kInvalidArgument, "SIZE_MISMATCH"));
  options.arguments[1] = Texture{.array = Must(client_.Put<double>({1, 2}, {2}))};
  EXPECT_TRUE(IsError(Failure(options), Code::kInvalidArgument, "DATA_TYPE_MISMATCH"));
  options.arguments[1] = KernelArgument(x);
  EXPECT_TRUE(IsError(Failure(options), Code::kInvalidArgument, "DATA_TYPE_MISMATCH"));
}

TEST_F(KernelTest, CooperativeGridsSynchronize) {
  KernelOptions options;
  options.code = R"(
    #include <cooperative_groups.h>
    extern "C" __global__ void ring(int* values, float* out) {
      auto grid = cooperative_groups::this_grid();
      for (int i = 0; i < 10; ++i) {
        int next = values[(blockIdx.x + 1) % gridDim.x];
        grid.sync();
        values[blockIdx.x] = next;
        grid.sync();
      }
      out[blockIdx.x] = values[blockIdx.x];
    })";
  options.entry = "ring";
  options.grid = {5};
  options.arguments = {Must(client_.Put<int32_t>({0, 1, 2, 3, 4}, {5})),
                       KernelArgument::Out({DataType::kFloat32, {5}})};
  options.cooperative = true;
  EXPECT_THAT(Values(options), ElementsAre(0, 1, 2, 3, 4));
  options.cooperative = false;
  const Error alone = Failure(options);
  EXPECT_TRUE(IsError(alone, Code::kFailedPrecondition, "KERNEL_FAULT"));
  EXPECT_THAT(alone.ToString(), HasSubstr("not cooperative"));
  options.cooperative = true;
  options.grid = {1u << 24};
  options.arguments[0] = Must(client_.Put<int32_t>({0, 1, 2, 3, 4}, {5}));
  const Error large = Failure(options);
  EXPECT_TRUE(IsError(large, Code::kInvalidArgument, ""));
  EXPECT_THAT(large.ToString(), HasSubstr("run at once"));
}

// A function for one kind of device is compiled only for that kind, and runs only there.
TEST_F(KernelTest, FunctionsOfOneKindOfDevice) {
  Rpc rpc(daemon_->address());
  v1::CreateFunctionRequest request;
  request.set_function_id("here_only");
  request.set_device_kind("tpu");
  auto* ufunc = request.mutable_function()->mutable_ufunc();
  ufunc->add_signatures("float32->float32");
  ufunc->mutable_body()->mutable_device_function()->set_source(
      DeviceKind() == "cuda" ? "__device__ float here_only(float x) {"
                               " asm(\"add.f32 %0, %0, %0;\" : \"+f\"(x)); return x; }"
                             : "#ifdef __CUDACC__\n#error\n#endif\n"
                               "__device__ float here_only(float x) { return x + x; }");
  ufunc->mutable_body()->mutable_device_function()->set_entry("here_only");
  const Outcome none = rpc.Call("FunctionService/CreateFunction", request);
  EXPECT_EQ(none.code, 9) << none.ToString();
  EXPECT_THAT(none.ToString(), HasSubstr("device kind: tpu"));
  request.set_device_kind(DeviceKind());
  const Outcome made = rpc.Call("FunctionService/CreateFunction", request);
  ASSERT_TRUE(made.ok()) << made.ToString();
  Array x = Must(client_.Put<float>({1, 2}, {2}));
  EXPECT_THAT(Get<float>(client_, client_.Ufunc("here_only", {x})), ElementsAre(2, 4));
  EXPECT_THAT(Get<float>(client_, client_.Expression("here_only(x) + 1", {{"x", x}})),
              ElementsAre(3, 5));
}

// The text of kernels goes to the client that launched them, after they have ended.
constexpr char kPrints[] = R"(
extern "C" __global__ void greet(long long* out, int number) {
  printf("block %d thread %u of %d: %.2f\n", blockIdx.x, threadIdx.x, number, number / 4.0);
  out[blockIdx.x * blockDim.x + threadIdx.x] = number;
}
extern "C" __global__ void flood(long long* out, int lines) {
  for (int i = 0; i < lines; ++i) printf("line %d of a flood that is long enough to be cut\n", i);
  out[0] = lines;
}
extern "C" __global__ void check(long long* out, int number) {
  printf("before %d\n", number);
  assert(number > 100);
  out[0] = number;
}
)";

KernelOptions Prints(const char* entry, int number, uint32_t threads = 1) {
  KernelOptions options;
  options.code = kPrints;
  options.entry = entry;
  options.block = {threads};
  options.arguments = {KernelArgument::Out({DataType::kInt64, {threads}}), number};
  return options;
}

size_t NumLines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST_F(KernelTest, PrintedTextIsReadOnceByItsSession) {
  Client other = daemon_->Connect();
  Must(other.Synchronize());
  const auto out = client_.Kernel(Prints("greet", 7, 2));
  Must(client_.Synchronize());
  EXPECT_EQ(Must(other.ReadPrinted()).text, "");
  const KernelOutput printed = Must(client_.ReadPrinted());
  EXPECT_EQ(printed.text, "block 0 thread 0 of 7: 1.75\nblock 0 thread 1 of 7: 1.75\n");
  EXPECT_EQ(printed.dropped_lines, 0u);
  EXPECT_EQ(Must(client_.ReadPrinted()).text, "");
}

TEST_F(KernelTest, PrintedTextIsAvailableWithTheResult) {
  const auto out = client_.Kernel(Prints("greet", 3));
  EXPECT_THAT(Get<int64_t>(client_, out.at(0)), ElementsAre(3));
  EXPECT_EQ(Must(client_.ReadPrinted()).text, "block 0 thread 0 of 3: 0.75\n");
}

TEST_F(KernelTest, RunWithoutSessionReturnsPrintedText) {
  const RunReply reply = Must(client_.Run(Operation::Kernel(Prints("greet", 5))));
  EXPECT_EQ(reply.printed.text, "block 0 thread 0 of 5: 1.25\n");
}

TEST_F(KernelTest, FloodIsTruncatedAndOthersKeepTheirText) {
  constexpr int kLines = 200'000;
  Client other = daemon_->Connect();
  for (int i = 0; i < 6; ++i) client_.Kernel(Prints("flood", kLines));
  const auto out = other.Kernel(Prints("greet", 9));
  Must(client_.Synchronize());
  Must(other.Synchronize());
  const KernelOutput printed = Must(client_.ReadPrinted());
  EXPECT_LE(printed.text.size(), 4u << 20);
  EXPECT_GT(printed.text.size(), 1u << 19);
  EXPECT_EQ(NumLines(printed.text) + printed.dropped_lines, 6u * kLines);
  EXPECT_EQ(Must(other.ReadPrinted()).text, "block 0 thread 0 of 9: 2.25\n");
}

TEST_F(KernelTest, FailedAssertNamesItsLineAndKeepsEarlierText) {
  const auto out = client_.Kernel(Prints("check", 5));
  const Error error = MustFail(client_.Fetch<int64_t>(out.at(0)));
  EXPECT_TRUE(IsError(error, Code::kFailedPrecondition, "KERNEL_FAULT"));
  EXPECT_THAT(error.message, HasSubstr("number > 100"));
  EXPECT_THAT(error.message, HasSubstr("block"));
  EXPECT_THAT(error.message, HasSubstr("thread"));
  if (DeviceKind() == "cpu") EXPECT_EQ(Must(client_.ReadPrinted()).text, "before 5\n");
}

TEST_F(KernelTest, JobContainsTheTextOfItsKernels) {
  const Rpc rpc(daemon_->address());
  v1::CreateJobRequest request;
  auto* launch = request.mutable_job()->add_operations()->mutable_kernel_launch();
  launch->set_source(kPrints);
  launch->set_entry("greet");
  auto* made = launch->add_arguments()->mutable_new_array();
  made->mutable_spec()->set_data_type(v1::DATA_TYPE_INT64);
  made->mutable_spec()->add_shape(1);
  made->mutable_output()->set_handle(1);
  launch->add_arguments()->mutable_scalar()->set_int_value(6);
  v1::GetJobRequest get;
  get.set_name(rpc.Get<v1::CreateJobResponse>("JobService/CreateJob", request).job().name());
  v1::GetJobResponse job;
  for (int i = 0; i < 3000 && !job.job().has_end_time(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    job = rpc.Get<v1::GetJobResponse>("JobService/GetJob", get);
  }
  EXPECT_EQ(job.job().state(), v1::Job::STATE_SUCCEEDED) << job.job().error().message();
  EXPECT_EQ(job.job().printed(), "block 0 thread 0 of 6: 1.50\n");
}

}  // namespace
}  // namespace stride::testing
