#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/ops/op_table.h"
#include "server/ops/promotion.h"
#include "server/worker/codegen/emit.h"
#include "tests/support/plan_helpers.h"
#include "tests/unit/worker/codegen/native_modules.h"

namespace stride::codegen {
namespace {

// The few functions of NVRTC that are needed; absent on machines without a CUDA toolkit.
struct Nvrtc {
  int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile)(void*, int, const char* const*);
  int (*log_size)(void*, size_t*);
  int (*log)(void*, char*);
  int (*destroy)(void**);

  static const Nvrtc* Load() {
    static const Nvrtc* const loaded = []() -> const Nvrtc* {
      void* library = nullptr;
      for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                               "/usr/local/cuda/lib64/libnvrtc.so"}) {
        if (library == nullptr) library = dlopen(name, RTLD_NOW);
      }
      if (library == nullptr) return nullptr;
      auto* nvrtc = new Nvrtc;
      auto bind = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      };
      bind(nvrtc->create, "nvrtcCreateProgram");
      bind(nvrtc->compile, "nvrtcCompileProgram");
      bind(nvrtc->log_size, "nvrtcGetProgramLogSize");
      bind(nvrtc->log, "nvrtcGetProgramLog");
      bind(nvrtc->destroy, "nvrtcDestroyProgram");
      return nvrtc;
    }();
    return loaded;
  }
};

// Compiles the text to PTX for Hopper; returns the log on failure.
std::string CompileErrors(const Nvrtc& nvrtc, const std::string& text) {
  void* program = nullptr;
  if (nvrtc.create(&program, text.c_str(), "text.cu", 0, nullptr, nullptr) != 0)
    return "cannot create the program";
  const char* options[] = {"--gpu-architecture=compute_90", "--std=c++17", "-fmad=false"};
  std::string errors;
  if (nvrtc.compile(program, 3, options) != 0) {
    size_t size = 0;
    nvrtc.log_size(program, &size);
    errors.resize(size);
    nvrtc.log(program, errors.data());
    errors.resize(std::min<size_t>(errors.size(), 3000));
    if (errors.empty()) errors = "failed without a log";
  }
  nvrtc.destroy(&program);
  return errors;
}

std::vector<DType> AllTypes() {
  std::vector<DType> types;
  for (int i = 1; i <= kNumDTypes; ++i) types.push_back(static_cast<DType>(i));
  return types;
}

class CodegenCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Nvrtc::Load() == nullptr)
      GTEST_SKIP() << "NVRTC is not on this machine, so that CUDA text cannot be compiled";
  }
};

// Every operation for every type it accepts, with all loops of one operation in one text.
TEST_F(CodegenCuda, EveryLoopOfEveryOperationCompiles) {
  int compiled = 0;
  for (const ops::OpRow& row : ops::OpTable()) {
    std::vector<std::string> texts;
    for (DType dtype : AllTypes()) {
      std::vector<ops::Input> inputs(row.arity, ops::testing::Array(dtype, {8}));
      if (row.rule == ops::TypeRule::kWhere) inputs[0] = ops::testing::Array(DType::kBool, {8});
      if (row.rule == ops::TypeRule::kLoadExponent)
        inputs[1] = ops::testing::Array(DType::kInt32, {8});
      auto plan =
          ops::PlanOperation(ops::testing::UfuncOf(std::string(row.name), row.arity), inputs, {});
      if (!plan.ok()) continue;
      auto text = EmitCuda(*plan->code);
      ASSERT_TRUE(text.ok()) << text.status();
      texts.push_back(*text);
    }
    ASSERT_FALSE(texts.empty()) << row.name;
    compiled += static_cast<int>(texts.size());
    EXPECT_EQ(CompileErrors(*Nvrtc::Load(), testing::JoinTexts(texts, true)), "") << row.name;
  }
  EXPECT_GT(compiled, 700);
}

TEST_F(CodegenCuda, ReductionsCompile) {
  for (int function = v1::Reduction::FUNCTION_SUM; function <= v1::Reduction::FUNCTION_STD;
       ++function) {
    std::vector<std::string> texts;
    for (DType dtype : AllTypes()) {
      for (int axis : {-1, 0, 1}) {
        v1::Operation operation;
        operation.mutable_reduction()->set_function(static_cast<v1::Reduction::Function>(function));
        operation.mutable_reduction()->add_axes(axis);
        operation.add_outputs()->set_handle(1);
        auto plan = ops::PlanOperation(operation, {ops::testing::Array(dtype, {30, 40, 50})}, {});
        ASSERT_TRUE(plan.ok()) << plan.status();
        auto text = EmitCuda(*plan->code);
        ASSERT_TRUE(text.ok()) << text.status();
        texts.push_back(*text);
      }
    }
    EXPECT_EQ(CompileErrors(*Nvrtc::Load(), testing::JoinTexts(texts, true)), "") << function;
  }
}

// Elements computed from inputs of other sizes than their own, in every layout.
TEST_F(CodegenCuda, ReductionsOfExpressionsCompile) {
  ArrayInfo turned = Contiguous(DType::kFloat32, {20, 30, 40});
  turned.strides = {4, 80, 2400};
  for (v1::Reduction::Function function :
       {v1::Reduction::FUNCTION_SUM, v1::Reduction::FUNCTION_ARGMAX,
        v1::Reduction::FUNCTION_COUNT_NONZERO, v1::Reduction::FUNCTION_VAR}) {
    std::vector<std::string> texts;
    for (DType dtype : {DType::kBool, DType::kInt8, DType::kFloat16, DType::kFloat32,
                        DType::kFloat64, DType::kComplex128}) {
      for (const ops::Input& second :
           {ops::testing::Array(DType::kInt8, {40}), ops::testing::Array(dtype, {20, 30, 1}),
            ops::Input(turned)}) {
        for (int axis : {-1, 0, 3}) {
          v1::Operation operation;
          v1::Reduction* reduction = operation.mutable_reduction();
          reduction->set_function(function);
          if (axis < 3) reduction->add_axes(axis);
          reduction->mutable_expression()->set_text("x * y + x");
          for (const char* name : {"x", "y"})
            (*reduction->mutable_expression()->mutable_inputs())[name].set_handle(1);
          operation.add_outputs()->set_handle(1);
          auto plan =
              ops::PlanOperation(operation, {ops::testing::Array(dtype, {20, 30, 40}), second}, {});
          ASSERT_TRUE(plan.ok()) << plan.status();
          auto text = EmitCuda(*plan->code);
          ASSERT_TRUE(text.ok()) << text.status();
          texts.push_back(*text);
        }
      }
    }
    EXPECT_EQ(CompileErrors(*Nvrtc::Load(), testing::JoinTexts(texts, true)), "") << function;
  }
}

std::string TextOf(const std::string& expression, DType dtype) {
  const ops::Input array = ops::testing::Array(dtype, {8});
  auto plan =
      ops::PlanOperation(ops::testing::ExpressionOf(expression, {"x", "y"}), {array, array}, {});
  EXPECT_TRUE(plan.ok()) << plan.status();
  auto text = EmitCuda(*plan->code);
  EXPECT_TRUE(text.ok()) << text.status();
  return *text;
}

size_t CountOf(const std::string& word, const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(CodegenCudaText, SinAndCosOfOneValueShareOneCall) {
  const std::string call = "  st_sincos(v";
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    EXPECT_EQ(CountOf(call, TextOf("cos(x)**2 + sin(x)**2 + 0*y", dtype)), 1);
    EXPECT_EQ(CountOf(call, TextOf("sin(x) * cos(x) - sin(y) * cos(y)", dtype)), 2);
    EXPECT_EQ(CountOf(call, TextOf("sin(x) * cos(y)", dtype)), 0);
    if (Nvrtc::Load() != nullptr)
      EXPECT_EQ(CompileErrors(*Nvrtc::Load(), TextOf("sin(x) * cos(x) + y", dtype)), "");
  }
}

TEST_F(CodegenCuda, MatmulAndStridedLoopsCompile) {
  std::vector<std::string> texts;
  for (DType dtype : AllTypes()) {
    if (IsFloat(dtype) || IsComplex(dtype)) continue;
    wire::Code code;
    code.mutable_matmul()->set_dtype(static_cast<int>(dtype));
    code.mutable_matmul()->set_left(static_cast<int>(dtype));
    code.mutable_matmul()->set_right(static_cast<int>(dtype));
    texts.push_back(*EmitCuda(code));
  }
  for (DType left : {DType::kInt8, DType::kUInt8}) {
    for (DType right : {DType::kInt8, DType::kUInt8}) {
      wire::Code code;
      code.mutable_matmul()->set_dtype(static_cast<int>(DType::kInt32));
      code.mutable_matmul()->set_left(static_cast<int>(left));
      code.mutable_matmul()->set_right(static_cast<int>(right));
      texts.push_back(*EmitCuda(code));
    }
  }
  for (DType dtype : AllTypes()) {
    ArrayInfo turned = Contiguous(dtype, {6, 5});
    turned.strides = {ItemSize(dtype), 6 * ItemSize(dtype)};
    auto plan = ops::PlanOperation(ops::testing::UfuncOf("equal", 2),
                                   {ops::Input(turned), ops::testing::Array(dtype, {6, 5})}, {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    texts.push_back(*EmitCuda(*plan->code));
  }
  EXPECT_EQ(CompileErrors(*Nvrtc::Load(), testing::JoinTexts(texts, true)), "");
}

}  // namespace
}  // namespace stride::codegen
