// Emitted code must compile for a device, for every operation and dtype that ops plans. The tests
// plan like the daemon.
#include <gtest/gtest.h>

#include <algorithm>

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "server/ops/block_loops.h"
#include "server/ops/op_table.h"
#include "server/ops/plan.h"
#include "server/worker/codegen/block_launch.h"
#include "server/worker/codegen/launch_abi.h"
#include "server/worker/cuda/compile/cuda_compiler.h"

namespace stride::cuda {
namespace {

class EmittedCodeTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { compiler_ = new CudaCompiler; }
  static void TearDownTestSuite() { delete compiler_; }
  void SetUp() override {
    if (CudaCompiler::Toolchain().empty()) GTEST_SKIP() << "no NVRTC on this machine";
  }

  static size_t BlockBytes(const wire::Task& task) {
    const std::vector<uint64_t> addresses(16, 256);
    if (task.has_routine())
      return 8 * codegen::PackRoutine(task.routine(), addresses, 256, 256).size();
    if (task.has_elementwise()) {
      const auto& launch = task.elementwise();
      const size_t operands = launch.inputs_size() + launch.outputs_size();
      return 8 * codegen::PackElementwise(launch, absl::MakeConstSpan(addresses).first(operands))
                     .size();
    }
    if (task.has_reduce()) {
      const auto& launch = task.reduce();
      return 8 * codegen::PackReduce(launch, codegen::PlanReduceCuda(launch, 132),
                                     absl::MakeConstSpan(addresses).first(launch.inputs_size() + 1),
                                     0)
                     .size();
    }
    return 8 * codegen::PackMatmul(task.matmul(), 256, 256, 256).size();
  }

  static void ExpectCompiles(const v1::Operation& operation, const std::vector<ops::Input>& inputs,
                             const std::vector<std::string>& entries,
                             const ops::Input& target = {}) {
    const std::vector<ops::Input> existing(operation.outputs_size(), target);
    auto plan = ops::PlanOperation(operation, inputs, existing);
    ASSERT_TRUE(plan.ok()) << plan.status() << operation.ShortDebugString();
    ASSERT_TRUE(plan->code.has_value());
    auto compiled = compiler_->Compile("cuda:sm_90", *plan->code);
    ASSERT_TRUE(compiled.ok()) << compiled.status() << operation.ShortDebugString();
    std::vector<std::string> found;
    for (const auto& kernel : compiled->description.kernels()) {
      found.push_back(kernel.entry());
      const bool marks = !plan->task.has_routine();
      ASSERT_EQ(kernel.parameters_size(), marks ? 2 : 1) << kernel.entry();
      if (marks) EXPECT_EQ(kernel.parameters(1).size(), sizeof(codegen::EndMark));
      // The driver reads this many bytes of the packed launch block.
      EXPECT_LE(kernel.parameters(0).size(), BlockBytes(plan->task)) << kernel.entry();
      EXPECT_GT(kernel.parameters(0).size() + 16, BlockBytes(plan->task)) << kernel.entry();
    }
    for (const std::string& entry : entries) {
      EXPECT_NE(std::find(found.begin(), found.end(), entry), found.end()) << entry;
    }
  }

  static CudaCompiler* compiler_;
};
CudaCompiler* EmittedCodeTest::compiler_ = nullptr;

v1::Operation UfuncOf(const std::string& function, int arity) {
  v1::Operation operation;
  operation.mutable_ufunc()->set_function(function);
  for (int i = 0; i < arity; ++i) operation.mutable_ufunc()->add_inputs()->set_handle(i + 1);
  operation.add_outputs()->set_handle(9);
  return operation;
}

TEST_F(EmittedCodeTest, EveryOperationOfTheTable) {
  for (const ops::OpRow& row : ops::OpTable()) {
    // One dtype per row, a different one for neighbours, so that every dtype occurs many times
    // without compiling every pair.
    const int first = static_cast<int>(row.name.size());
    for (int step = 0; step < kNumDTypes; ++step) {
      const DType dtype = *DTypeFromNumber(1 + (first + step) % kNumDTypes);
      if (!ops::HasLoop(row, dtype)) continue;
      const v1::Operation operation = UfuncOf(std::string(row.name), row.arity);
      const std::vector<ops::Input> inputs(row.arity, Contiguous(dtype, {100}));
      const ops::Input none;
      // Some rows need other types next to their own (where, ldexp): any supported type will do.
      if (!ops::PlanOperation(operation, inputs, absl::MakeConstSpan(&none, 1)).ok()) continue;
      ExpectCompiles(operation, inputs, {codegen::kElementwiseEntry});
      break;
    }
  }
}

// One kernel, which the scheduler finds by name, with the parameters that a launch sets.
TEST_F(EmittedCodeTest, BlockLoops) {
  wire::Code code;
  code.mutable_block_loops();
  auto compiled = compiler_->Compile("cuda:sm_90", code);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  ASSERT_EQ(compiled->description.kernels_size(), 1);
  const auto& kernel = compiled->description.kernels(0);
  EXPECT_EQ(kernel.entry(), ops::kBlocksEntry);
  ASSERT_EQ(kernel.parameters_size(), 2);
  EXPECT_EQ(kernel.parameters(0).size(), uint64_t{codegen::kBlocksBytes});
  EXPECT_EQ(kernel.parameters(1).size(), sizeof(codegen::EndMark));
  EXPECT_LT(compiled->object.size(), size_t{4} << 20);
}

TEST_F(EmittedCodeTest, EveryAccess) {
  ArrayInfo strided = Contiguous(DType::kFloat32, {8, 9, 10});
  std::swap(strided.strides[0], strided.strides[2]);
  std::swap(strided.shape[0], strided.shape[2]);
  ExpectCompiles(UfuncOf("add", 2), {strided, Contiguous(DType::kFloat32, {10, 9, 8})},
                 {codegen::kElementwiseEntry});
  ExpectCompiles(UfuncOf("add", 2),
                 {Contiguous(DType::kComplex64, {10, 9, 8}), Contiguous(DType::kComplex64, {9, 1})},
                 {codegen::kElementwiseEntry});
  ExpectCompiles(UfuncOf("add", 2),
                 {Contiguous(DType::kUInt8, {int64_t{1} << 33}), Contiguous(DType::kUInt8, {1})},
                 {codegen::kElementwiseEntry});
}

TEST_F(EmittedCodeTest, EveryReduction) {
  for (int function = v1::Reduction::FUNCTION_SUM; function <= v1::Reduction::FUNCTION_NORM;
       ++function) {
    for (const std::vector<int32_t>& axes : {std::vector<int32_t>{}, {0}, {1}}) {
      v1::Operation operation;
      operation.mutable_reduction()->set_function(static_cast<v1::Reduction::Function>(function));
      operation.mutable_reduction()->mutable_input()->set_handle(1);
      for (int32_t axis : axes) operation.mutable_reduction()->add_axes(axis);
      operation.add_outputs()->set_handle(9);
      ExpectCompiles(operation,
                     {Contiguous(function % 2 == 0 ? DType::kFloat32 : DType::kInt16, {300, 400})},
                     {codegen::kReduceEntry});
    }
  }
}

TEST_F(EmittedCodeTest, EveryIntegerMatmul) {
  for (int number = 1; number <= static_cast<int>(DType::kUInt64); ++number) {
    v1::Operation operation;
    operation.mutable_matmul()->mutable_left()->set_handle(1);
    operation.mutable_matmul()->mutable_right()->set_handle(2);
    operation.add_outputs()->set_handle(9);
    const DType dtype = *DTypeFromNumber(number);
    const bool of_bytes = ItemSize(dtype) == 1;
    ExpectCompiles(
        operation, {Contiguous(dtype, {30, 40}), Contiguous(dtype, {40, 50})},
        of_bytes ? std::vector<std::string>{codegen::kByteMatmulEntry}
                 : std::vector<std::string>{codegen::kMatmulEntry, codegen::kSmallMatmulEntry});
  }
}

TEST_F(EmittedCodeTest, MatmulOfBytesInWiderTypes) {
  for (DType left : {DType::kInt8, DType::kUInt8}) {
    for (DType right : {DType::kInt8, DType::kUInt8}) {
      v1::Operation operation;
      operation.mutable_matmul()->mutable_left()->set_handle(1);
      operation.mutable_matmul()->mutable_right()->set_handle(2);
      operation.mutable_matmul()->set_data_type(v1::DATA_TYPE_INT32);
      operation.add_outputs()->set_handle(9);
      ExpectCompiles(operation, {Contiguous(left, {30, 40}), Contiguous(right, {40, 50})},
                     {codegen::kByteMatmulEntry});
    }
  }
}

TEST_F(EmittedCodeTest, UfuncsWithTwoOutputsAndMasks) {
  v1::Operation operation = UfuncOf("frexp", 1);
  operation.add_outputs()->set_handle(10);
  for (DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64})
    ExpectCompiles(operation, {Contiguous(dtype, {100})}, {codegen::kElementwiseEntry});
  operation.mutable_ufunc()->set_function("modf");
  operation.mutable_ufunc()->mutable_where()->set_handle(7);
  ExpectCompiles(operation, {Contiguous(DType::kFloat64, {100}), Contiguous(DType::kBool, {100})},
                 {codegen::kElementwiseEntry});
}

TEST_F(EmittedCodeTest, EveryAccumulation) {
  v1::Operation operation;
  auto* accumulation = operation.mutable_accumulation();
  accumulation->mutable_input()->set_handle(1);
  accumulation->set_axis(1);
  operation.add_outputs()->set_handle(9);
  for (int number = 1; number <= kNumDTypes; ++number) {
    const DType dtype = *DTypeFromNumber(number);
    accumulation->set_function(number % 2 == 0 ? "add" : "maximum");
    accumulation->set_include_initial(number % 2 == 0);
    ExpectCompiles(operation, {Contiguous(dtype, {3, 400, 5})},
                   {"stride_phase0", "stride_phase1", "stride_phase2"});
  }
}

TEST_F(EmittedCodeTest, EveryIndexing) {
  for (int number = 1; number <= kNumDTypes; ++number) {
    const DType dtype = *DTypeFromNumber(number);
    const DType index = *DTypeFromNumber(2 + number % 8);
    v1::Operation gather;
    gather.mutable_gather()->mutable_input()->set_handle(1);
    gather.mutable_gather()->add_indices()->set_handle(2);
    gather.mutable_gather()->add_indices()->set_handle(3);
    gather.mutable_gather()->set_axis(1);
    gather.mutable_gather()->set_mode(static_cast<v1::IndexMode>(number % 4));
    gather.add_outputs()->set_handle(9);
    const std::vector<ops::Input> inputs = {Contiguous(dtype, {3, 40, 5, 6}),
                                            Contiguous(index, {7, 1}), Contiguous(index, {8})};
    ExpectCompiles(gather, inputs, {"stride_phase0"});
    v1::Operation scatter;
    scatter.mutable_scatter()->mutable_values()->set_handle(1);
    *scatter.mutable_scatter()->mutable_indices() = gather.gather().indices();
    scatter.mutable_scatter()->set_axis(1);
    scatter.add_outputs()->set_handle(9);
    ExpectCompiles(scatter, {Contiguous(DType::kFloat32, {6}), inputs[1], inputs[2]},
                   {"stride_phase0", "stride_phase3"}, inputs[0]);
  }
}

TEST_F(EmittedCodeTest, EveryDistribution) {
  for (int generator : {1, 2}) {
    v1::Operation operation;
    auto* random = operation.mutable_creation()->mutable_random();
    random->set_generator(static_cast<v1::Creation::Random::Generator>(generator));
    random->mutable_spec()->add_shape(100);
    operation.add_outputs()->set_handle(9);
    auto expect = [&](v1::DataType type) {
      random->mutable_spec()->set_data_type(type);
      ExpectCompiles(operation, {}, {codegen::kElementwiseEntry});
    };
    random->mutable_bits();
    expect(v1::DATA_TYPE_UINT32);
    random->mutable_integers()->mutable_high()->set_int_value(100);
    expect(v1::DATA_TYPE_INT16);
    random->mutable_uniform();
    expect(v1::DATA_TYPE_FLOAT16);
    expect(v1::DATA_TYPE_FLOAT64);
    random->mutable_normal();
    expect(v1::DATA_TYPE_FLOAT32);
    expect(v1::DATA_TYPE_FLOAT64);
  }
}

TEST_F(EmittedCodeTest, EveryMaskAndSort) {
  for (int number = 1; number <= kNumDTypes; ++number) {
    const DType dtype = *DTypeFromNumber(number);
    v1::Operation compress;
    compress.mutable_compress()->mutable_input()->set_handle(1);
    compress.mutable_compress()->mutable_mask()->set_handle(2);
    compress.mutable_compress()->set_count(5);
    compress.add_outputs()->set_handle(9);
    ExpectCompiles(compress, {Contiguous(dtype, {30, 40}), Contiguous(DType::kBool, {30})},
                   {"stride_phase0", "stride_phase1"});
    v1::Operation nonzero;
    nonzero.mutable_nonzero()->mutable_input()->set_handle(1);
    nonzero.mutable_nonzero()->set_count(5);
    nonzero.add_outputs()->set_handle(9);
    nonzero.add_outputs()->set_handle(10);
    ExpectCompiles(nonzero, {Contiguous(dtype, {30, 40})}, {"stride_phase0", "stride_phase2"});
    v1::Operation sort;
    sort.mutable_sort()->mutable_input()->set_handle(1);
    sort.mutable_sort()->set_descending(number % 2 == 0);
    sort.mutable_sort()->set_indices(number % 3 != 0);
    sort.add_outputs()->set_handle(9);
    ExpectCompiles(sort, {Contiguous(dtype, {30, 40})}, {"stride_phase0", "stride_phase1"});
    v1::Operation search;
    search.mutable_search()->mutable_sorted()->set_handle(1);
    search.mutable_search()->mutable_values()->set_handle(2);
    search.add_outputs()->set_handle(9);
    ExpectCompiles(search, {Contiguous(dtype, {30}), Contiguous(DType::kInt64, {4, 5})},
                   {"stride_phase0"});
  }
}

// Keys of every width and kind; each has ten entries, which take seconds to compile.
TEST_F(EmittedCodeTest, SelectionsAndSums) {
  for (DType dtype : {DType::kBool, DType::kInt8, DType::kUInt64, DType::kFloat16, DType::kFloat32,
                      DType::kComplex128}) {
    v1::Operation lexsort;
    lexsort.mutable_sort()->mutable_input()->set_handle(1);
    lexsort.mutable_sort()->set_indices(true);
    lexsort.mutable_sort()->add_more_keys()->set_handle(2);
    lexsort.add_outputs()->set_handle(9);
    ExpectCompiles(lexsort, {Contiguous(dtype, {30, 40}), Contiguous(DType::kFloat16, {30, 40})},
                   {"stride_phase0", "stride_phase1"});
    v1::Operation select;
    select.mutable_select()->mutable_input()->set_handle(1);
    select.mutable_select()->mutable_ranks()->set_handle(2);
    select.add_outputs()->set_handle(9);
    ExpectCompiles(select, {Contiguous(dtype, {30, 4000}), Contiguous(DType::kInt64, {3})},
                   {"stride_phase3", "stride_phase4", "stride_phase5", "stride_phase6",
                    "stride_phase7", "stride_phase8"});
    v1::Operation partition;
    partition.mutable_partition()->mutable_input()->set_handle(1);
    partition.mutable_partition()->set_indices(IsInteger(dtype));
    partition.mutable_partition()->add_kth(7);
    partition.mutable_partition()->add_kth(70);
    partition.add_outputs()->set_handle(9);
    ExpectCompiles(partition, {Contiguous(dtype, {30, 4000})},
                   {"stride_phase3", "stride_phase7", "stride_phase8", "stride_phase9"});
    v1::Operation correlate;
    correlate.mutable_correlate()->mutable_left()->set_handle(1);
    correlate.mutable_correlate()->mutable_right()->set_handle(2);
    correlate.mutable_correlate()->set_convolve(IsInteger(dtype));
    correlate.add_outputs()->set_handle(9);
    ExpectCompiles(correlate, {Contiguous(dtype, {300}), Contiguous(dtype, {40})},
                   {"stride_phase0"});
    v1::Operation interpolate;
    interpolate.mutable_interpolate()->mutable_input()->set_handle(1);
    interpolate.mutable_interpolate()->mutable_known()->set_handle(2);
    interpolate.mutable_interpolate()->mutable_values()->set_handle(3);
    interpolate.add_outputs()->set_handle(9);
    ExpectCompiles(
        interpolate,
        {Contiguous(DType::kFloat32, {30}), Contiguous(DType::kInt64, {4}), Contiguous(dtype, {4})},
        {"stride_phase0"});
    if (!IsFloat(dtype) && !IsComplex(dtype)) continue;
    for (v1::Reduction::Function function :
         {v1::Reduction::FUNCTION_SUM, v1::Reduction::FUNCTION_MEAN, v1::Reduction::FUNCTION_MAX,
          v1::Reduction::FUNCTION_ARGMIN}) {
      v1::Operation reduce;
      reduce.mutable_reduction()->set_function(function);
      reduce.mutable_reduction()->mutable_input()->set_handle(1);
      reduce.mutable_reduction()->add_axes(1);
      reduce.mutable_reduction()->set_skip_nan(true);
      reduce.add_outputs()->set_handle(9);
      ExpectCompiles(reduce, {Contiguous(dtype, {30, 40})}, {"stride_reduce"});
    }
  }
}

}  // namespace
}  // namespace stride::cuda
