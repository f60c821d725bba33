// The emitted CUDA text on a real device, with the same cases and references as the CPU's. Needs a
// driver, NVRTC and a GPU.
#include <dlfcn.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/worker/codegen/emit.h"
#include "server/worker/codegen/launch_abi.h"
#include "tests/support/cases.h"
#include "tests/support/plan_helpers.h"
#include "tests/unit/worker/codegen/native_modules.h"

namespace stride::codegen {
namespace {

using ops::Plan;
using testing::OpCase;
using R = v1::Reduction;

// Not the build folder if the program was copied to a machine with a GPU.
std::string CasesFolder() {
  const char* given = std::getenv("STRIDE_TEST_CASES");
  return given != nullptr ? given : STRIDE_CASES;
}

void* OpenAny(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (void* library = dlopen(name, RTLD_NOW)) return library;
  }
  return nullptr;
}

// A context on device 0 and NVRTC, called through their C interfaces.
class Gpu {
 public:
  static Gpu* Get() {
    static Gpu* const gpu = [] {
      auto* made = new Gpu;
      made->driver_ = OpenAny({"libcuda.so.1"});
      made->nvrtc_ =
          OpenAny({"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"});
      made->ready_ = made->driver_ != nullptr && made->nvrtc_ != nullptr && made->Start();
      return made;
    }();
    return gpu;
  }
  bool ready() const { return ready_; }
  int num_multiprocessors() const { return num_multiprocessors_; }

  // Returns the module, or nullptr after printing the log.
  void* Load(const std::string& text) {
    void* program = nullptr;
    Nvrtc("nvrtcCreateProgram", &program, text.c_str(), "text.cu", 0, nullptr, nullptr);
    std::string architecture = absl::StrCat("--gpu-architecture=sm_", capability_);
    const char* options[] = {architecture.c_str(), "--std=c++17", "-fmad=false"};
    if (Nvrtc("nvrtcCompileProgram", program, 3, options) != 0) {
      size_t size = 0;
      Nvrtc("nvrtcGetProgramLogSize", program, &size);
      std::string log(size, '\0');
      Nvrtc("nvrtcGetProgramLog", program, log.data());
      ADD_FAILURE() << log.substr(0, 2000);
      return nullptr;
    }
    size_t size = 0;
    Nvrtc("nvrtcGetCUBINSize", program, &size);
    std::string cubin(size, '\0');
    Nvrtc("nvrtcGetCUBIN", program, cubin.data());
    Nvrtc("nvrtcDestroyProgram", &program);
    void* module = nullptr;
    EXPECT_EQ(Driver("cuModuleLoadData", &module, cubin.data()), 0);
    return module;
  }
  uint64_t Upload(const std::string& bytes) {
    uint64_t address = 0;
    EXPECT_EQ(Driver("cuMemAlloc_v2", &address, bytes.size() + 16), 0);
    Driver("cuMemcpyHtoD_v2", address, bytes.data(), bytes.size());
    allocated_.push_back(address);
    return address;
  }
  std::string Download(uint64_t address, size_t size) {
    std::string bytes(size, '\0');
    EXPECT_EQ(Driver("cuMemcpyDtoH_v2", bytes.data(), address, size), 0);
    return bytes;
  }
  void FreeAll() {
    for (uint64_t address : allocated_) Driver("cuMemFree_v2", address);
    allocated_.clear();
  }
  void Launch(void* module, const std::string& entry, const LaunchShape& shape,
              LaunchBlock& block) {
    void* function = nullptr;
    ASSERT_EQ(Driver("cuModuleGetFunction", &function, module, entry.c_str()), 0) << entry;
    const uint64_t words = Upload(std::string(8, '\0'));  // the completion word, and its counter
    EndMark mark{words, words + 4, 77};
    void* parameters[] = {block.data(), &mark};
    ASSERT_EQ(
        Driver("cuLaunchKernel", function, shape.grid[0], shape.grid[1], shape.grid[2],
               shape.block[0], shape.block[1], shape.block[2], 0u, static_cast<void*>(nullptr),
               static_cast<void**>(parameters), static_cast<void**>(nullptr)),
        0)
        << entry;
    ASSERT_EQ(Driver("cuCtxSynchronize"), 0) << entry;
    uint32_t after[2];
    std::memcpy(after, Download(words, sizeof(after)).data(), sizeof(after));
    EXPECT_EQ(after[0], mark.value) << entry << ": its end was not told of";
    EXPECT_EQ(after[1], 0u) << entry << ": its counter is left";
  }

 private:
  template <typename... Args>
  int Driver(const char* name, Args... args) {
    return reinterpret_cast<int (*)(Args...)>(dlsym(driver_, name))(args...);
  }
  template <typename... Args>
  int Nvrtc(const char* name, Args... args) {
    return reinterpret_cast<int (*)(Args...)>(dlsym(nvrtc_, name))(args...);
  }
  bool Start() {
    int device = 0, major = 0, minor = 0;
    void* context = nullptr;
    if (Driver("cuInit", 0u) != 0 || Driver("cuDeviceGet", &device, 0) != 0) return false;
    if (Driver("cuDevicePrimaryCtxRetain", &context, device) != 0 ||
        Driver("cuCtxSetCurrent", context) != 0)
      return false;
    Driver("cuDeviceGetAttribute", &num_multiprocessors_, 16, device);  // MULTIPROCESSOR_COUNT
    Driver("cuDeviceGetAttribute", &major, 75, device);                 // COMPUTE_CAPABILITY_MAJOR
    Driver("cuDeviceGetAttribute", &minor, 76, device);
    capability_ = major * 10 + minor;
    return true;
  }

  void *driver_ = nullptr, *nvrtc_ = nullptr;
  bool ready_ = false;
  int num_multiprocessors_ = 1, capability_ = 0;
  std::vector<uint64_t> allocated_;
};

class CodegenGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Gpu::Get()->ready()) GTEST_SKIP() << "no GPU, driver or NVRTC on this machine";
  }
  Gpu& gpu_ = *Gpu::Get();
};

TEST_F(CodegenGpu, UfuncCases) {
  auto cases = testing::ReadCases(CasesFolder() + "/ufunc.case");
  ASSERT_TRUE(cases.ok()) << cases.status();
  constexpr size_t kTextsTogether = 60;
  int failures = 0;
  for (size_t first = 0; first < cases->size(); first += kTextsTogether) {
    size_t last = std::min(first + kTextsTogether, cases->size());
    std::vector<std::string> texts;
    std::vector<Plan> plans;
    for (size_t i = first; i < last; ++i) {
      const OpCase& op_case = (*cases)[i];
      std::vector<ops::Input> inputs;
      for (const auto& column : op_case.inputs)
        inputs.push_back(Contiguous(column.dtype, {op_case.count}));
      auto plan = ops::PlanOperation(
          ops::testing::UfuncOf(op_case.op, static_cast<int>(inputs.size())), inputs, {});
      ASSERT_TRUE(plan.ok()) << plan.status();
      texts.push_back(*EmitCuda(*plan->code));
      plans.push_back(*plan);
    }
    void* module = gpu_.Load(testing::JoinTexts(texts, true));
    ASSERT_NE(module, nullptr);
    for (size_t i = first; i < last; ++i) {
      const OpCase& op_case = (*cases)[i];
      if (op_case.count == 0) continue;
      const auto& launch = plans[i - first].task.elementwise();
      std::vector<uint64_t> slots, addresses;
      for (const auto& column : op_case.inputs) slots.push_back(gpu_.Upload(column.bytes));
      slots.push_back(gpu_.Upload(op_case.expected.bytes + "guard"));
      for (const auto& operand : launch.inputs()) addresses.push_back(slots[operand.arena()]);
      addresses.push_back(slots.back());
      LaunchBlock block = PackElementwise(launch, addresses);
      gpu_.Launch(module, absl::StrCat(kElementwiseEntry, "_", i - first), ElementwiseShape(launch),
                  block);
      std::string output = gpu_.Download(slots.back(), op_case.expected.bytes.size() + 5);
      EXPECT_EQ(output.substr(output.size() - 5), "guard");
      std::string wrong = testing::Differences(op_case, output);
      if (!wrong.empty() && ++failures <= 60) ADD_FAILURE() << wrong;
      gpu_.FreeAll();
    }
  }
  EXPECT_EQ(failures, 0);
}

TEST_F(CodegenGpu, ReductionsOfEveryShape) {
  std::mt19937 random(5);
  std::string bytes(4 * 3000000, '\0');
  auto* data = reinterpret_cast<int32_t*>(bytes.data());
  for (int i = 0; i < 3000000; ++i) data[i] = static_cast<int32_t>(random() % 2001) - 1000;
  uint64_t input = gpu_.Upload(bytes);
  const uint64_t arrivals =
      gpu_.Upload(std::string(4 * ReduceArrivals(gpu_.num_multiprocessors()), '\0'));
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{3000000}, {3000, 1000}, {20, 100000}, {100000, 20}, {7, 5, 11}, {1}}) {
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
      for (R::Function function : {R::FUNCTION_SUM, R::FUNCTION_MAX, R::FUNCTION_ARGMIN}) {
        v1::Operation operation;
        operation.mutable_reduction()->set_function(function);
        operation.mutable_reduction()->add_axes(axis);
        operation.add_outputs()->set_handle(1);
        auto plan = ops::PlanOperation(operation, {ops::testing::Array(DType::kInt32, shape)}, {});
        ASSERT_TRUE(plan.ok()) << plan.status();
        const auto& launch = plan->task.reduce();
        void* module = gpu_.Load(*EmitCuda(*plan->code));
        ASSERT_NE(module, nullptr);
        ReduceShape reduce = PlanReduceCuda(launch, gpu_.num_multiprocessors());
        size_t size = static_cast<size_t>(plan->outputs[0].size_bytes());
        uint64_t output = gpu_.Upload(std::string(size, '\xAB'));
        uint64_t scratch = gpu_.Upload(std::string(reduce.scratch_bytes, '\xCD'));
        LaunchBlock block = PackReduce(launch, reduce, {input, output}, scratch, arrivals);
        gpu_.Launch(module, kReduceEntry, reduce.first, block);
        std::string result = gpu_.Download(output, size);
        int64_t inner = 1, length = shape[axis], outer = 1;
        for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
        for (int i = 0; i < axis; ++i) outer *= shape[i];
        int wrong = 0;
        for (int64_t kept = 0; kept < outer * inner; ++kept) {
          const int32_t* first = data + kept / inner * length * inner + kept % inner;
          int64_t want = function == R::FUNCTION_ARGMIN ? 0 : first[0];
          for (int64_t i = 1; i < length; ++i) {
            int32_t x = first[i * inner];
            if (function == R::FUNCTION_SUM) want += x;
            if (function == R::FUNCTION_MAX) want = std::max<int64_t>(want, x);
            if (function == R::FUNCTION_ARGMIN && x < first[want * inner]) want = i;
          }
          int64_t got = 0;
          size_t item = function == R::FUNCTION_MAX ? 4 : 8;
          std::memcpy(&got, result.data() + static_cast<size_t>(kept) * item, item);
          if (item == 4) got = static_cast<int32_t>(got);
          wrong += got != want;
        }
        EXPECT_EQ(wrong, 0) << ops::testing::Array(DType::kInt8, shape)->num_elements() << " axis "
                            << axis << " function " << function;
      }
    }
  }
  gpu_.FreeAll();
}

TEST_F(CodegenGpu, ManyLongSumsInParts) {
  const int64_t rows = 800, columns = 140001;
  std::string bytes(static_cast<size_t>(4 * rows * columns), '\0');
  auto* data = reinterpret_cast<int32_t*>(bytes.data());
  for (int64_t i = 0; i < rows * columns; ++i) data[i] = static_cast<int32_t>(i * 7919 % 2001);
  v1::Operation operation;
  operation.mutable_reduction()->set_function(R::FUNCTION_SUM);
  operation.mutable_reduction()->add_axes(1);
  operation.add_outputs()->set_handle(1);
  auto plan =
      ops::PlanOperation(operation, {ops::testing::Array(DType::kInt32, {rows, columns})}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto& launch = plan->task.reduce();
  const ReduceShape shape = PlanReduceCuda(launch, gpu_.num_multiprocessors());
  EXPECT_GT(shape.splits, 1);
  void* module = gpu_.Load(*EmitCuda(*plan->code));
  ASSERT_NE(module, nullptr);
  const uint64_t input = gpu_.Upload(bytes), output = gpu_.Upload(std::string(8 * rows, '\xAB')),
                 scratch = gpu_.Upload(std::string(shape.scratch_bytes, '\xCD')),
                 arrivals =
                     gpu_.Upload(std::string(4 * ReduceArrivals(gpu_.num_multiprocessors()), '\0'));
  LaunchBlock block = PackReduce(launch, shape, {input, output}, scratch, arrivals);
  // Twice: the first run leaves its counters unchanged.
  for (int round = 0; round < 2; ++round) gpu_.Launch(module, kReduceEntry, shape.first, block);
  std::vector<int64_t> sums(rows);
  std::memcpy(sums.data(), gpu_.Download(output, 8 * rows).data(), 8 * rows);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t want = 0;
    for (int64_t i = 0; i < columns; ++i) want += data[row * columns + i];
    ASSERT_EQ(sums[row], want) << row;
  }
  gpu_.FreeAll();
}

TEST_F(CodegenGpu, StridedAndBroadcast) {
  // a is transposed, b a column, c reversed.
  const int64_t m = 321, n = 123;
  std::string a(4 * m * n, '\0'), b(4 * m, '\0'), c(4 * n, '\0');
  auto* pa = reinterpret_cast<int32_t*>(a.data());
  auto* pb = reinterpret_cast<int32_t*>(b.data());
  auto* pc = reinterpret_cast<int32_t*>(c.data());
  for (int i = 0; i < m * n; ++i) pa[i] = i * 7;
  for (int i = 0; i < m; ++i) pb[i] = i * i;
  for (int i = 0; i < n; ++i) pc[i] = -i;
  ArrayInfo turned = Contiguous(DType::kInt32, {m, n}), column = Contiguous(DType::kInt32, {m, 1}),
            reversed = Contiguous(DType::kInt32, {n});
  turned.strides = {4, 4 * m};
  reversed.strides = {-4};
  reversed.offset = 4 * (n - 1);
  auto plan = ops::PlanOperation(ops::testing::ExpressionOf("a * 2 + b - c", {"a", "b", "c"}),
                                 {turned, column, reversed}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  void* module = gpu_.Load(*EmitCuda(*plan->code));
  ASSERT_NE(module, nullptr);
  std::vector<uint64_t> slots = {gpu_.Upload(a), gpu_.Upload(b), gpu_.Upload(c),
                                 gpu_.Upload(std::string(4 * m * n, '\xAB'))},
                        addresses;
  const auto& launch = plan->task.elementwise();
  for (const auto& operand : launch.inputs())
    addresses.push_back(slots[operand.arena()] + operand.offset());
  addresses.push_back(slots[3]);
  LaunchBlock block = PackElementwise(launch, addresses);
  gpu_.Launch(module, kElementwiseEntry, ElementwiseShape(launch), block);
  std::string output = gpu_.Download(slots[3], a.size());
  const auto* result = reinterpret_cast<const int32_t*>(output.data());
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j)
      ASSERT_EQ(result[i * n + j], pa[j * m + i] * 2 + pb[i] - pc[n - 1 - j]);
  }
  gpu_.FreeAll();
}

TEST_F(CodegenGpu, IntegerMatmul) {
  v1::Operation operation;
  operation.mutable_matmul()->mutable_left()->set_handle(1);
  operation.mutable_matmul()->mutable_right()->set_handle(2);
  operation.add_outputs()->set_handle(3);
  const int64_t m = 70, k = 33, n = 50;
  auto plan = ops::PlanOperation(
      operation,
      {ops::testing::Array(DType::kInt16, {3, m, k}), ops::testing::Array(DType::kInt16, {k, n})},
      {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  void* module = gpu_.Load(*EmitCuda(*plan->code));
  ASSERT_NE(module, nullptr);
  std::string a(2 * 3 * m * k, '\0'), b(2 * k * n, '\0');
  auto* pa = reinterpret_cast<int16_t*>(a.data());
  auto* pb = reinterpret_cast<int16_t*>(b.data());
  for (int i = 0; i < 3 * m * k; ++i) pa[i] = static_cast<int16_t>(i * 31);
  for (int i = 0; i < k * n; ++i) pb[i] = static_cast<int16_t>(i * 17);
  uint64_t output = gpu_.Upload(std::string(2 * 3 * m * n, '\xAB'));
  LaunchBlock block = PackMatmul(plan->task.matmul(), gpu_.Upload(a), gpu_.Upload(b), output);
  gpu_.Launch(module, MatmulEntry(plan->task.matmul()), MatmulShape(plan->task.matmul()), block);
  std::string bytes = gpu_.Download(output, 2 * 3 * m * n);
  const auto* result = reinterpret_cast<const int16_t*>(bytes.data());
  for (int64_t row = 0; row < 3 * m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      int32_t want = 0;
      for (int64_t i = 0; i < k; ++i) want += pa[row * k + i] * pb[i * n + column];
      ASSERT_EQ(result[row * n + column], static_cast<int16_t>(want));
    }
  }
  gpu_.FreeAll();
}

}  // namespace
}  // namespace stride::codegen
