#include "server/precompile/code_list.h"

#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "server/broker/content_key.h"
#include "server/ops/op_table.h"
#include "server/ops/plan.h"
#include "server/ops/reduce_by_blocks.h"
#include "server/store/array_info.h"
#include "stride/v1/operation.pb.h"

namespace stride::precompile {
namespace {

using Reduction = v1::Reduction;
using Shape = std::vector<int64_t>;

// Extents of each axis: above 15, so that threads may run along any axis (ops::KeptContiguous), and
// short ones.
const Shape kLine = {100}, kMatrix = {20, 30}, kSmallMatrix = {3, 4};

std::vector<DType> AllTypes() {
  std::vector<DType> all;
  for (int number = 1; number <= kNumDTypes; ++number) all.push_back(static_cast<DType>(number));
  return all;
}

// Common types. All types would make the code too large or too slow to compile.
constexpr DType kCommonTypes[] = {DType::kBool,      DType::kUInt8,   DType::kInt32,
                                  DType::kInt64,     DType::kFloat32, DType::kFloat64,
                                  DType::kComplex128};

class CodeList {
 public:
  explicit CodeList(bool is_cuda) : is_cuda_(is_cuda) {}

  std::vector<wire::Code> Make() {
    wire::Code loops;
    loops.mutable_block_loops();
    AddCode(std::move(loops));
    AddPlainReductions();
    AddReductions();
    AddAccumulations();
    AddOrders();
    AddIndexing();
    AddHistograms();
    AddGroups();
    AddProducts();
    if (is_cuda_) AddRandom();
    return std::move(codes_);
  }

 private:
  void AddCode(wire::Code code) {
    if (known_.insert(broker::SerializeCode(code)).second) codes_.push_back(std::move(code));
  }

  // Skips operations without a loop of this type: the planner refuses them, so they need no code.
  void Add(const v1::Operation& given, const std::vector<ops::Input>& inputs,
           const ops::Input& existing = {}) {
    v1::Operation operation = given;
    if (operation.outputs().empty()) operation.add_outputs()->set_handle(kOutput);
    const std::vector<ops::Input> targets(static_cast<size_t>(operation.outputs_size()), existing);
    auto plan = ops::PlanOperation(operation, inputs, targets);
    if (plan.ok() && plan->code.has_value()) AddCode(*std::move(plan->code));
  }

  static ops::Input Array(DType dtype, const Shape& shape) { return Contiguous(dtype, shape); }

  // Plain reductions serve all types and layouts; the following avoid a copy of the values.
  void AddReductions() {
    const std::vector<DType> types =
        is_cuda_ ? std::vector<DType>(std::begin(kCommonTypes), std::end(kCommonTypes))
                 : std::vector<DType>{DType::kInt64, DType::kFloat32, DType::kFloat64};
    for (int number = Reduction::Function_MIN + 1; number <= Reduction::Function_MAX; ++number) {
      for (DType dtype : types) AddReduction(static_cast<Reduction::Function>(number), dtype);
    }
  }

  void AddReduction(Reduction::Function function, DType dtype) {
    const auto add = [&](const Shape& shape, std::vector<int> axes) {
      v1::Operation operation;
      operation.mutable_reduction()->set_function(function);
      operation.mutable_reduction()->mutable_input()->set_handle(1);
      operation.mutable_reduction()->mutable_axes()->Assign(axes.begin(), axes.end());
      Add(operation, {Array(dtype, shape)});
    };
    add(kLine, {});
    add(kMatrix, {0});
    add(kMatrix, {1});
    if (is_cuda_) add(kSmallMatrix, {0});
  }

  // Reductions of values in memory; block loops prepare their inputs and finish their results.
  void AddPlainReductions() {
    using Code = wire::ReduceCode;
    for (int combine = Code::COMBINE_ADD; combine <= Code::COMBINE_MOMENTS; ++combine) {
      if (combine == Code::COMBINE_PROGRAM) continue;
      const bool logical =
          combine == Code::COMBINE_LOGICAL_OR || combine == Code::COMBINE_LOGICAL_AND;
      for (DType dtype : AllTypes()) {
        // 16-bit floats accumulate in 32 bits.
        if (ops::ComputeType(dtype) != dtype || (logical && !IsBool(dtype))) continue;
        if (combine == Code::COMBINE_MOMENTS && !IsFloat(dtype) && !IsComplex(dtype)) continue;
        AddPlainReduction(static_cast<Code::Combine>(combine), static_cast<int32_t>(dtype));
      }
    }
  }

  void AddPlainReduction(wire::ReduceCode::Combine combine, int32_t dtype) {
    if (is_cuda_) {
      for (bool columns : {false, true}) {
        for (const ops::TakenAtOnce& taken : ops::TakenBy(combine, dtype, columns))
          AddCode(ops::PlainReduceCode(combine, dtype, columns, taken));
      }
      return;
    }
    AddCode(ops::PlainReduceCode(combine, dtype, /*columns=*/false, 1));
    AddCode(ops::PlainReduceCode(combine, dtype, /*columns=*/false, 2));
    AddCode(ops::PlainReduceCode(combine, dtype, /*columns=*/true, 1));
  }

  void AddAccumulations() {
    for (const char* function : {"add", "multiply"}) {
      for (DType dtype : AllTypes()) AddAccumulation(function, dtype);
    }
    for (const char* function : {"maximum", "minimum"}) {
      for (DType dtype : AllTypes()) AddAccumulation(function, dtype);
    }
  }

  void AddAccumulation(const char* function, DType dtype) {
    v1::Operation operation;
    operation.mutable_accumulation()->set_function(function);
    operation.mutable_accumulation()->mutable_input()->set_handle(1);
    operation.mutable_accumulation()->set_axis(0);
    Add(operation, {Array(dtype, kLine)});
    operation.mutable_accumulation()->set_axis(1);
    Add(operation, {Array(dtype, kMatrix)});
  }

  void AddOrders() {
    for (DType dtype : AllTypes()) {
      for (bool indices : {false, true}) {
        v1::Operation sort;
        sort.mutable_sort()->mutable_input()->set_handle(1);
        sort.mutable_sort()->set_indices(indices);
        Add(sort, {Array(dtype, kLine)});
      }
    }
    for (DType dtype : {DType::kInt32, DType::kInt64, DType::kFloat32, DType::kFloat64}) {
      v1::Operation top;
      top.mutable_top_k()->mutable_input()->set_handle(1);
      top.mutable_top_k()->set_k(kCount);
      top.add_outputs()->set_handle(kOutput);
      top.add_outputs()->set_handle(kOutput + 1);
      Add(top, {Array(dtype, kLine)});
    }
    for (DType dtype : AllTypes()) {
      v1::Operation search;
      search.mutable_search()->mutable_sorted()->set_handle(1);
      search.mutable_search()->mutable_values()->set_handle(2);
      for (bool right : {false, true}) {
        search.mutable_search()->set_right(right);
        Add(search, {Array(dtype, kLine), Array(dtype, kLine)});
      }
      v1::Operation select;
      select.mutable_select()->mutable_input()->set_handle(1);
      select.mutable_select()->mutable_ranks()->set_handle(2);
      Add(select, {Array(dtype, kLine), Array(DType::kInt64, {2})});
      AddPartition(dtype, /*indices=*/false);
      AddPartition(dtype, /*indices=*/true);
    }
  }

  void AddPartition(DType dtype, bool indices) {
    v1::Operation partition;
    partition.mutable_partition()->mutable_input()->set_handle(1);
    partition.mutable_partition()->add_kth(kCount);
    partition.mutable_partition()->set_indices(indices);
    Add(partition, {Array(dtype, kLine)});
  }

  // Counts and sums of groups, and sums at indices.
  void AddGroups() {
    v1::Operation groups;
    groups.mutable_group_reduce()->set_function("add");
    groups.mutable_group_reduce()->mutable_groups()->set_handle(1);
    groups.mutable_group_reduce()->set_num_groups(kCount);
    v1::Operation counts = groups;
    counts.mutable_group_reduce()->mutable_values()->mutable_scalar()->set_int_value(1);
    counts.mutable_group_reduce()->set_data_type(v1::DATA_TYPE_INT64);
    Add(counts, {std::nullopt, Array(DType::kInt64, kLine)});
    groups.mutable_group_reduce()->mutable_values()->set_handle(2);
    for (DType dtype : {DType::kInt64, DType::kFloat32, DType::kFloat64}) {
      groups.mutable_group_reduce()->set_data_type(static_cast<v1::DataType>(dtype));
      Add(groups, {Array(dtype, kLine), Array(DType::kInt64, kLine)});
      v1::Operation at;
      at.mutable_apply_at()->set_function("add");
      at.mutable_apply_at()->mutable_values()->set_handle(1);
      at.mutable_apply_at()->add_indices()->set_handle(2);
      at.add_outputs()->set_handle(kOutput);
      at.mutable_outputs(0)->set_existing(true);
      Add(at, {Array(dtype, kLine), Array(DType::kInt64, kLine)}, Array(dtype, kLine));
      at.mutable_apply_at()->mutable_values()->mutable_scalar()->set_float_value(1);
      Add(at, {std::nullopt, Array(DType::kInt64, kLine)}, Array(dtype, kLine));
    }
  }

  void AddIndexing() {
    for (DType dtype : AllTypes()) {
      v1::Operation gather;
      gather.mutable_gather()->mutable_input()->set_handle(1);
      gather.mutable_gather()->add_indices()->set_handle(2);
      Add(gather, {Array(dtype, kLine), Array(DType::kInt64, kLine)});
      Add(gather, {Array(dtype, kMatrix), Array(DType::kInt64, kLine)});
      v1::Operation along = gather;
      along.mutable_gather()->set_along_axis(true);
      along.mutable_gather()->set_axis(1);
      Add(along, {Array(dtype, kMatrix), Array(DType::kInt64, kMatrix)});
      gather.mutable_gather()->add_indices()->set_handle(3);
      Add(gather,
          {Array(dtype, kMatrix), Array(DType::kInt64, kLine), Array(DType::kInt64, kLine)});
      v1::Operation scatter;
      scatter.mutable_scatter()->mutable_values()->set_handle(1);
      scatter.mutable_scatter()->add_indices()->set_handle(2);
      scatter.add_outputs()->set_handle(kOutput);
      scatter.mutable_outputs(0)->set_existing(true);
      AddScatters(scatter, dtype);
      v1::Operation compress;
      compress.mutable_compress()->mutable_input()->set_handle(1);
      compress.mutable_compress()->mutable_mask()->set_handle(2);
      compress.mutable_compress()->set_count(kCount);
      Add(compress, {Array(dtype, kLine), Array(DType::kBool, kLine)});
      Add(compress, {Array(dtype, kMatrix), Array(DType::kBool, kMatrix)});
    }
    for (DType dtype : AllTypes()) {
      AddNonzero(dtype, kLine);
      AddNonzero(dtype, kMatrix);
    }
  }

  // Scatters of an array and of a scalar.
  void AddScatters(v1::Operation scatter, DType dtype) {
    const ops::Input line = Array(dtype, kLine), matrix = Array(dtype, kMatrix),
                     places = Array(DType::kInt64, kLine), number = Array(dtype, {});
    Add(scatter, {line, places}, line);
    Add(scatter, {number, places}, line);
    v1::Operation along = scatter;
    along.mutable_scatter()->set_along_axis(true);
    along.mutable_scatter()->set_axis(1);
    Add(along, {matrix, Array(DType::kInt64, kMatrix)}, matrix);
    Add(along, {number, Array(DType::kInt64, kMatrix)}, matrix);
    Add(along, {number, Array(DType::kInt64, {kMatrix[0], 1})}, matrix);
    v1::Operation columns = scatter;
    columns.mutable_scatter()->set_axis(1);
    Add(columns, {number, places}, matrix);
    Add(columns, {Array(dtype, {kMatrix[0], kLine[0]}), places}, matrix);
    scatter.mutable_scatter()->add_indices()->set_handle(3);
    Add(scatter, {line, places, places}, matrix);
    Add(scatter, {number, places, places}, matrix);
  }

  void AddNonzero(DType dtype, const Shape& shape) {
    v1::Operation nonzero;
    nonzero.mutable_nonzero()->mutable_input()->set_handle(1);
    nonzero.mutable_nonzero()->set_count(kCount);
    for (size_t i = 0; i < shape.size(); ++i) nonzero.add_outputs()->set_handle(kOutput + i);
    Add(nonzero, {Array(dtype, shape)});
  }

  void AddHistograms() {
    for (DType dtype : AllTypes()) {
      v1::Operation histogram;
      histogram.mutable_histogram()->mutable_input()->set_handle(1);
      auto* bins = histogram.mutable_histogram()->mutable_uniform();
      bins->set_count(kCount);
      bins->set_high(1);
      Add(histogram, {Array(dtype, kLine)});
    }
  }

  void AddProducts() {
    for (DType dtype : AllTypes()) {
      v1::Operation matmul;
      matmul.mutable_matmul()->mutable_left()->set_handle(1);
      matmul.mutable_matmul()->mutable_right()->set_handle(2);
      Add(matmul, {Array(dtype, {20, 30}), Array(dtype, {30, 20})});
    }
    // A vector-vector product is a reduction, and a vector-matrix product may be one.
    v1::Operation dot;
    dot.mutable_matmul()->mutable_left()->set_handle(1);
    dot.mutable_matmul()->mutable_right()->set_handle(2);
    for (DType dtype : AllTypes()) {
      Add(dot, {Array(dtype, kLine), Array(dtype, kLine)});
      Add(dot, {Array(dtype, {20, 30}), Array(dtype, {30})});
      Add(dot, {Array(dtype, {20}), Array(dtype, {20, 30})});
    }
    for (DType left : {DType::kInt8, DType::kUInt8}) {
      for (DType right : {DType::kInt8, DType::kUInt8}) {
        v1::Operation matmul;
        matmul.mutable_matmul()->mutable_left()->set_handle(1);
        matmul.mutable_matmul()->mutable_right()->set_handle(2);
        if (left != right) Add(matmul, {Array(left, {20, 30}), Array(right, {30, 20})});
        matmul.mutable_matmul()->set_data_type(v1::DATA_TYPE_INT32);
        Add(matmul, {Array(left, {20, 30}), Array(right, {30, 20})});
      }
    }
  }

  // Block loops would compute a whole generator block per element. Client values such as a key or a
  // range are launch constants; constants without effect produce no instruction.
  void AddRandom() {
    v1::Operation operation;
    auto* random = operation.mutable_creation()->mutable_random();
    random->mutable_spec()->add_shape(kCount);
    const auto add = [&](DType dtype) {
      random->mutable_spec()->set_data_type(static_cast<v1::DataType>(dtype));
      Add(operation, {});
    };
    for (DType dtype : {DType::kUInt32, DType::kUInt64}) {
      random->mutable_bits();
      add(dtype);
    }
    for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
      auto* uniform = random->mutable_uniform();
      add(dtype);
      uniform->set_high(kCount);
      add(dtype);
      uniform->set_low(1);
      add(dtype);
      random->clear_uniform();
      auto* normal = random->mutable_normal();
      add(dtype);
      normal->set_deviation(kCount);
      add(dtype);
      normal->set_mean(1);
      add(dtype);
    }
    for (DType dtype : {DType::kInt32, DType::kInt64, DType::kUInt64}) {
      auto* integers = random->mutable_integers();
      integers->mutable_high()->set_int_value(kCount);
      add(dtype);
      integers->mutable_low()->set_int_value(1);
      add(dtype);
      random->clear_integers();
    }
  }

  static constexpr uint64_t kOutput = 100;
  static constexpr int64_t kCount = 3;

  const bool is_cuda_;
  std::set<std::string> known_;
  std::vector<wire::Code> codes_;
};

}  // namespace

std::vector<wire::Code> CodesFor(const std::string& kind) {
  return CodeList(kind == "cuda").Make();
}

}  // namespace stride::precompile
