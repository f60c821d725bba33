// The pieces of an operation do the work of the whole. Each piece is walked like a device does,
// with element addresses as values. Together they must map every input element to the same output
// as the whole launch.
#include "server/ops/pieces.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/plan_helpers.h"

namespace stride::ops {
namespace {

using testing::Array;
using testing::ExpressionOf;
using ::testing::HasSubstr;
using testing::UfuncOf;

constexpr int64_t kKiB = 1024;
using Value = std::vector<int64_t>;  // addresses of the input elements of an element
using Load = std::function<Value(int slot, int64_t address)>;
using Memory = std::map<int64_t, Value>;  // by address

// Calls `visit(index, offsets of each operand)` for each iteration of the loop.
void Walk(const std::vector<int64_t>& extents, const std::vector<std::vector<int64_t>>& strides,
          const std::function<void(int64_t, const std::vector<int64_t>&)>& visit) {
  int64_t count = 1;
  for (int64_t extent : extents) count *= extent;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int64_t> offsets(strides.size(), 0);
    int64_t rest = i;
    for (size_t axis = extents.size(); axis-- > 0; rest /= extents[axis]) {
      for (size_t j = 0; j < strides.size(); ++j)
        offsets[j] += rest % extents[axis] * strides[j][axis];
    }
    visit(i, offsets);
  }
}

std::vector<int64_t> ToVector(const google::protobuf::RepeatedField<int64_t>& field) {
  return {field.begin(), field.end()};
}

Memory RunLoop(const wire::ElementwiseCode& code, const wire::ElementwiseLaunch& launch,
               bool of_piece, const Load& load) {
  Memory out;
  std::vector<std::vector<int64_t>> strides;
  for (const auto& input : launch.inputs()) strides.push_back(ToVector(input.strides()));
  strides.push_back(ToVector(launch.outputs(0).strides()));
  bool index = false;
  int64_t base = 0;
  for (const auto& instruction : code.program().instructions()) {
    index |= instruction.kind() == wire::Instruction::KIND_INDEX;
    bool moved =
        instruction.kind() == wire::Instruction::KIND_SCALAR &&
        static_cast<int>(instruction.index()) == launch.scalars_size() - 1 &&
        launch.scalars(launch.scalars_size() - 1).dtype() == static_cast<int>(DType::kInt64);
    if (moved) std::memcpy(&base, launch.scalars(launch.scalars_size() - 1).value().data(), 8);
  }
  if (!index || !of_piece) base = 0;
  EXPECT_EQ(code.layout().rank(), static_cast<uint32_t>(launch.extents_size()));
  EXPECT_EQ(code.layout().access_size(), launch.inputs_size() + 1);
  Walk(ToVector(launch.extents()), strides, [&](int64_t i, const std::vector<int64_t>& at) {
    Value value;
    for (int j = 0; j < launch.inputs_size(); ++j) {
      const auto& input = launch.inputs(j);
      for (int64_t v :
           load(static_cast<int>(input.arena()), static_cast<int64_t>(input.offset()) + at[j]))
        value.push_back(v);
    }
    if (index) value.push_back(base + i);
    out[static_cast<int64_t>(launch.outputs(0).offset()) + at.back()] = value;
  });
  return out;
}

Memory RunReduce(const wire::ReduceLaunch& launch, const Load& load) {
  Memory out;
  auto extents = ToVector(launch.kept_extents());
  auto reduced = ToVector(launch.reduced_extents());
  extents.insert(extents.end(), reduced.begin(), reduced.end());
  auto output = ToVector(launch.output().strides());
  Walk(ToVector(launch.kept_extents()), {output}, [&](int64_t, const std::vector<int64_t>& at) {
    out[static_cast<int64_t>(launch.output().offset()) + at[0]];
  });
  output.resize(extents.size(), 0);
  std::vector<std::vector<int64_t>> strides;
  for (const auto& input : launch.inputs()) strides.push_back(ToVector(input.strides()));
  strides.push_back(output);
  Walk(extents, strides, [&](int64_t, const std::vector<int64_t>& at) {
    Value& value = out[static_cast<int64_t>(launch.output().offset()) + at.back()];
    for (int j = 0; j < launch.inputs_size(); ++j) {
      const auto& input = launch.inputs(j);
      for (int64_t v :
           load(static_cast<int>(input.arena()), static_cast<int64_t>(input.offset()) + at[j]))
        value.push_back(v);
    }
  });
  for (auto& [address, value] : out) std::sort(value.begin(), value.end());
  return out;
}

Memory RunTask(const Plan& plan, bool of_piece, const Load& load) {
  const wire::Task& task = plan.task;
  Memory out;
  if (task.has_elementwise())
    return RunLoop(plan.code->elementwise(), task.elementwise(), of_piece, load);
  if (task.has_reduce()) return RunReduce(task.reduce(), load);
  if (task.has_copy_bytes()) {
    const auto& copy = task.copy_bytes();
    for (uint64_t i = 0; i < copy.size(); ++i)
      out[static_cast<int64_t>(copy.to_offset() + i)] =
          load(static_cast<int>(copy.from_arena()), static_cast<int64_t>(copy.from_offset() + i));
  } else {
    for (uint64_t i = 0; i < task.zero_fill().size(); ++i)
      out[static_cast<int64_t>(task.zero_fill().offset() + i)];
  }
  return out;
}

// The address in the whole buffer of each byte of a piece.
std::vector<int64_t> Addresses(const IndexBox& region) {
  std::vector<int64_t> addresses;
  Walk(region.extents, {region.strides}, [&](int64_t, const std::vector<int64_t>& at) {
    for (int64_t i = 0; i < region.run_bytes; ++i) addresses.push_back(region.offset + at[0] + i);
  });
  return addresses;
}

struct Outcome {
  int64_t num_pieces = 0;
  int num_partials = 0;
  int num_keeping_rest = 0;
};

// Cuts the operation and compares all pieces with the whole.
Outcome Check(const v1::Operation& operation, const std::vector<Input>& inputs, int64_t max_bytes,
              const std::vector<Input>& existing = {}) {
  Outcome outcome;
  auto plan = PlanOperation(operation, inputs, existing);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return outcome;
  int slot = static_cast<int>(inputs.size());
  auto pieces = Pieces::Cut(*plan, slot, max_bytes);
  EXPECT_TRUE(pieces.ok()) << pieces.status();
  if (!pieces.ok()) return outcome;
  auto whole = [](int s, int64_t address) { return Value{s * (int64_t{1} << 40) + address}; };
  const Memory expected = RunTask(*plan, false, whole);
  Memory got, partials;
  int64_t partial_bytes = 0;
  outcome.num_pieces = pieces->size();
  for (int64_t i = 0; i < pieces->size(); ++i) {
    Piece piece = pieces->At(i);
    std::vector<std::vector<int64_t>> sources;
    int64_t bytes = piece.output_bytes;
    for (const Piece::Source& source : piece.sources) {
      sources.push_back(Addresses(source.region));
      EXPECT_EQ(static_cast<int64_t>(sources.back().size()), source.region.num_bytes());
      bytes += source.region.num_bytes();
    }
    if (piece.role == Piece::Role::kCombine) bytes += partial_bytes;
    EXPECT_LE(bytes, max_bytes) << i;
    Memory out = RunTask(piece.plan, true, [&](int s, int64_t address) -> Value {
      if (piece.role == Piece::Role::kCombine) return partials.at(address);
      return whole(piece.sources[s].input, sources[s].at(address));
    });
    if (piece.role == Piece::Role::kPartial) {
      ++outcome.num_partials;
      for (auto& [address, value] : out) {
        EXPECT_LT(address, piece.output_bytes);
        partials[partial_bytes + address] = value;
      }
      partial_bytes += piece.output_bytes;
      continue;
    }
    auto addresses = Addresses(piece.output);
    EXPECT_EQ(static_cast<int64_t>(addresses.size()), piece.output_bytes);
    for (auto& [address, value] : out) {
      bool fresh = got.emplace(addresses.at(address), value).second;
      EXPECT_TRUE(fresh) << "made twice";
    }
    if (piece.keeps_rest) ++outcome.num_keeping_rest;
    if (piece.role == Piece::Role::kCombine) {
      partials.clear();
      partial_bytes = 0;
    }
  }
  EXPECT_TRUE(got == expected);
  return outcome;
}

v1::Operation ReduceOf(v1::Reduction::Function function, std::vector<int32_t> axes = {}) {
  v1::Operation operation;
  auto* reduction = operation.mutable_reduction();
  reduction->set_function(function);
  reduction->mutable_input()->set_handle(1);
  reduction->mutable_axes()->Assign(axes.begin(), axes.end());
  operation.add_outputs()->set_handle(2);
  return operation;
}

absl::Status Refusal(const v1::Operation& operation, const std::vector<Input>& inputs,
                     int64_t max_bytes) {
  auto plan = PlanOperation(operation, inputs, {});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return Pieces::Cut(*plan, static_cast<int>(inputs.size()), max_bytes).status();
}

Input Transposed(DType dtype, int64_t rows, int64_t columns) {
  int64_t item = ItemSize(dtype);
  return ArrayInfo{dtype, {rows, columns}, {item, rows * item}, 0};
}

TEST(Pieces, LoopsOfAnyShapeAreCutEvenly) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{10007}, {1, 10007}, {3, 4001}, {100, 3, 37}, {2, 2, 2, 1111}}) {
    Input x = Array(DType::kFloat32, shape);
    auto outcome = Check(UfuncOf("add", 2), {x, x}, 12 * kKiB);
    EXPECT_GE(outcome.num_pieces, 4 * (x->num_elements() * 12) / (5 * 12 * kKiB));
    EXPECT_LE(outcome.num_pieces, 2 + x->num_elements() / kKiB);
    EXPECT_EQ(outcome.num_keeping_rest, 0);
  }
}

TEST(Pieces, SmallOperationIsOnePiece) {
  Input x = Array(DType::kFloat64, {10, 10});
  EXPECT_EQ(Check(UfuncOf("sin", 1), {x}, 1600).num_pieces, 1);
  EXPECT_EQ(Check(ReduceOf(v1::Reduction::FUNCTION_SUM), {x}, 1600).num_pieces, 1);
}

TEST(Pieces, EmptyOperationHasNoPieces) {
  EXPECT_EQ(Check(UfuncOf("sin", 1), {Array(DType::kFloat64, {0, 5})}, 100).num_pieces, 0);
  EXPECT_EQ(Check(ReduceOf(v1::Reduction::FUNCTION_SUM, {0}), {Array(DType::kFloat64, {0, 5})}, 100)
                .num_pieces,
            1);
  EXPECT_EQ(Check(ReduceOf(v1::Reduction::FUNCTION_SUM, {1}), {Array(DType::kFloat64, {0, 5})}, 100)
                .num_pieces,
            0);
}

TEST(Pieces, SingleElementIsNotCut) {
  EXPECT_TRUE(absl::IsUnimplemented(Refusal(UfuncOf("sin", 1), {Array(DType::kFloat64, {1})}, 15)));
}

TEST(Pieces, DtypesOfAllSizes) {
  for (DType dtype : {DType::kBool, DType::kInt8, DType::kFloat16, DType::kInt32, DType::kFloat64,
                      DType::kComplex128}) {
    Input x = Array(dtype, {50, 77});
    Check(UfuncOf("equal", 2), {x, Array(DType::kInt16, {50, 77})}, 5 * kKiB);
  }
}

TEST(Pieces, BroadcastOperandsStayWhole) {
  Input row = Array(DType::kFloat32, {1000}), x = Array(DType::kFloat32, {40, 1000});
  auto plan = PlanOperation(UfuncOf("add", 2), {x, row}, {});
  auto pieces = Pieces::Cut(*plan, 2, 30 * kKiB);
  ASSERT_TRUE(pieces.ok()) << pieces.status();
  ASSERT_GT(pieces->size(), 3);
  for (int64_t i = 1; i < pieces->size(); ++i)
    EXPECT_EQ(pieces->At(i).sources[1].region, pieces->At(0).sources[1].region);
  Check(UfuncOf("add", 2), {x, row}, 30 * kKiB);
  Check(UfuncOf("add", 2), {x, Array(DType::kFloat32, {40, 1})}, 30 * kKiB);
  Check(UfuncOf("add", 2), {Array(DType::kFloat32, {1, 1}), x}, 30 * kKiB);
  // Too large for every piece: cut along the other axis.
  Check(UfuncOf("add", 2), {x, row}, 5 * kKiB);
  Check(UfuncOf("where", 3), {Array(DType::kBool, {40, 1}), x, row}, 9 * kKiB);
}

TEST(Pieces, ViewsOfAllKinds) {
  Input x = Array(DType::kFloat32, {60, 128});
  Input back = ArrayInfo{DType::kFloat32, {60, 128}, {-512, 4}, 59 * 512};
  Input mirrored = ArrayInfo{DType::kFloat32, {60, 128}, {512, -4}, 508};
  Input second = ArrayInfo{DType::kFloat32, {60, 128}, {1024, 8}, 4};
  Input part = ArrayInfo{DType::kFloat32, {60, 128}, {5000, 4}, 12};
  Input windows = ArrayInfo{DType::kFloat32, {60, 128}, {4, 4}, 0};
  for (const Input& view : {back, mirrored, second, part, windows}) {
    Check(UfuncOf("negative", 1), {view}, 9 * kKiB);
    Check(UfuncOf("add", 2), {view, x}, 9 * kKiB);
  }
  Check(UfuncOf("negative", 1), {Transposed(DType::kFloat32, 60, 128)}, 9 * kKiB);
  // Rows of one are columns of the other; few elements of a large array.
  Check(UfuncOf("add", 2), {x, Transposed(DType::kFloat32, 60, 128)}, 9 * kKiB);
  Check(UfuncOf("add", 2), {x, Transposed(DType::kFloat32, 60, 128)}, kKiB);
  Check(UfuncOf("negative", 1), {ArrayInfo{DType::kInt8, {5000}, {100}, 7}}, kKiB);
}

TEST(Pieces, IntoAnExistingView) {
  Input x = Array(DType::kFloat32, {60, 128});
  Input out = ArrayInfo{DType::kFloat32, {60, 128}, {-512, 4}, 59 * 512};
  EXPECT_EQ(Check(UfuncOf("negative", 1), {x}, 9 * kKiB, {out}).num_keeping_rest, 0);
  // Memory between its elements is unchanged.
  Input gaps = ArrayInfo{DType::kFloat32, {60, 128}, {1024, 8}, 4};
  auto outcome = Check(UfuncOf("negative", 1), {x}, 9 * kKiB, {gaps});
  EXPECT_EQ(outcome.num_keeping_rest, outcome.num_pieces);
}

TEST(Pieces, ElementIndicesArePreserved) {
  for (const char* what : {"range", "space"}) {
    v1::Operation operation;
    operation.add_outputs()->set_handle(1);
    if (std::string(what) == "range") {
      operation.mutable_creation()->mutable_range()->mutable_stop()->set_int_value(5000);
    } else {
      auto* space = operation.mutable_creation()->mutable_linear_space();
      space->mutable_start()->set_float_value(0);
      space->mutable_stop()->set_float_value(1);
      space->set_count(5000);
    }
    EXPECT_EQ(Check(operation, {}, 8 * kKiB).num_pieces, 5) << what;
    // Into a view of two axes that do not merge.
    if (std::string(what) == "range") continue;
    Input gaps = ArrayInfo{DType::kFloat64, {5000}, {16}, 8};
    Check(operation, {}, 16 * kKiB, {gaps});
  }
}

TEST(Pieces, FillsAndPlainCopies) {
  v1::Operation fill;
  fill.add_outputs()->set_handle(1);
  auto* spec = fill.mutable_creation()->mutable_fill()->mutable_spec();
  spec->set_data_type(v1::DATA_TYPE_FLOAT64);
  spec->add_shape(3000);
  EXPECT_EQ(Check(fill, {}, 8 * kKiB).num_pieces, 3);
  fill.mutable_creation()->mutable_fill()->mutable_value()->set_float_value(2);
  EXPECT_EQ(Check(fill, {}, 8 * kKiB).num_pieces, 3);
  v1::Operation copy;
  copy.mutable_copy()->mutable_input()->set_handle(1);
  copy.add_outputs()->set_handle(2);
  EXPECT_EQ(Check(copy, {Array(DType::kInt16, {3, 1000})}, 4 * kKiB).num_pieces, 3);
  copy.mutable_copy()->set_data_type(v1::DATA_TYPE_FLOAT64);
  Check(copy, {Array(DType::kInt16, {3, 1000})}, 4 * kKiB);
}

TEST(Pieces, ReductionsAlongEachAxis) {
  Input x = Array(DType::kFloat32, {200, 300});
  for (v1::Reduction::Function function :
       {v1::Reduction::FUNCTION_SUM, v1::Reduction::FUNCTION_PROD, v1::Reduction::FUNCTION_MIN,
        v1::Reduction::FUNCTION_MAX, v1::Reduction::FUNCTION_MEAN, v1::Reduction::FUNCTION_ANY,
        v1::Reduction::FUNCTION_ALL, v1::Reduction::FUNCTION_NORM, v1::Reduction::FUNCTION_VAR}) {
    EXPECT_GT(Check(ReduceOf(function), {x}, 50 * kKiB).num_partials, 4);
    EXPECT_GT(Check(ReduceOf(function, {0}), {x}, 50 * kKiB).num_pieces, 4);
    EXPECT_EQ(Check(ReduceOf(function, {1}), {x}, 50 * kKiB).num_partials, 0);
  }
  Input y = Array(DType::kInt8, {9, 70, 80});
  for (const std::vector<int32_t>& axes :
       std::vector<std::vector<int32_t>>{{0, 1}, {1, 2}, {0, 2}, {0}, {1}, {2}}) {
    Check(ReduceOf(v1::Reduction::FUNCTION_SUM, axes), {y}, 11 * kKiB);
    Check(ReduceOf(v1::Reduction::FUNCTION_SUM, axes), {y}, 3 * kKiB + 900);
  }
}

TEST(Pieces, PartialResultsHaveTheAccumulatorType) {
  auto plan =
      PlanOperation(ReduceOf(v1::Reduction::FUNCTION_MEAN), {Array(DType::kFloat16, {9999})}, {});
  auto pieces = Pieces::Cut(*plan, 1, 5000);
  ASSERT_TRUE(pieces.ok());
  ASSERT_EQ(pieces->size(), 6);
  Piece first = pieces->At(0), last = pieces->At(5);
  EXPECT_EQ(first.role, Piece::Role::kPartial);
  EXPECT_EQ(first.output_bytes, 4);
  EXPECT_EQ(testing::CountOps(first.plan.code->reduce().finish()), 0);
  EXPECT_EQ(last.role, Piece::Role::kCombine);
  EXPECT_EQ(last.plan.code->reduce().output_dtype(), static_cast<int>(DType::kFloat16));
  EXPECT_EQ(testing::CountOps(last.plan.code->reduce().finish(), "divide"), 1);
  // The count of all, not of the last piece.
  EXPECT_EQ(last.plan.task.reduce().finish_scalars(0).SerializeAsString(),
            plan->task.reduce().finish_scalars(0).SerializeAsString());
}

TEST(Pieces, ReductionsOfExpressions) {
  const Input x = Array(DType::kFloat32, {200, 300}), row = Array(DType::kInt16, {300});
  for (const std::vector<int32_t>& axes : std::vector<std::vector<int32_t>>{{}, {0}, {1}}) {
    for (const Input& second : {row, x, Transposed(DType::kFloat32, 200, 300)}) {
      v1::Operation operation = ReduceOf(v1::Reduction::FUNCTION_MEAN, axes);
      operation.mutable_reduction()->clear_input();
      *operation.mutable_reduction()->mutable_expression() =
          ExpressionOf("(x - y) * x", {"x", "y"}).expression();
      EXPECT_GT(Check(operation, {x, second}, 50 * kKiB).num_pieces, 4);
    }
  }
}

TEST(Pieces, ReductionsOfViewsAndWithinOneRow) {
  Check(ReduceOf(v1::Reduction::FUNCTION_SUM, {0}), {Transposed(DType::kFloat32, 200, 300)},
        50 * kKiB);
  Check(ReduceOf(v1::Reduction::FUNCTION_SUM, {1}), {Transposed(DType::kFloat32, 200, 300)},
        50 * kKiB);
  Check(ReduceOf(v1::Reduction::FUNCTION_SUM),
        {ArrayInfo{DType::kFloat32, {200, 300}, {2400, -8}, 2392}}, 50 * kKiB);
  // A single row is too large.
  auto rows = Check(ReduceOf(v1::Reduction::FUNCTION_SUM, {1}), {Array(DType::kFloat32, {3, 9000})},
                    10 * kKiB);
  EXPECT_EQ(rows.num_partials, 12);
  EXPECT_EQ(rows.num_pieces, 15);
  // Few long rows are summed column by column, without partial results.
  EXPECT_EQ(Check(ReduceOf(v1::Reduction::FUNCTION_SUM, {0}), {Array(DType::kFloat32, {3, 9000})},
                  10 * kKiB)
                .num_partials,
            0);
}

TEST(Pieces, UnsplittableOperationsAreUnimplemented) {
  Input x = Array(DType::kFloat64, {200, 300});
  for (v1::Reduction::Function arg :
       {v1::Reduction::FUNCTION_ARGMIN, v1::Reduction::FUNCTION_ARGMAX}) {
    EXPECT_GT(Check(ReduceOf(arg, {1}), {x}, 50 * kKiB).num_pieces, 4);
    auto status = Refusal(ReduceOf(arg), {x}, 50 * kKiB);
    EXPECT_TRUE(absl::IsUnimplemented(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("reductions to an index"));
  }
  v1::Operation matmul;
  matmul.mutable_matmul()->mutable_left()->set_handle(1);
  matmul.mutable_matmul()->mutable_right()->set_handle(2);
  matmul.add_outputs()->set_handle(3);
  auto status =
      Refusal(matmul, {Array(DType::kFloat64, {20, 20}), Array(DType::kFloat64, {20, 20})}, kKiB);
  EXPECT_THAT(std::string(status.message()), HasSubstr("matrix product"));
}

TEST(Pieces, PiecesOfExpressionsShareCode) {
  Input x = Array(DType::kFloat64, {64, 1000});
  auto plan = PlanOperation(ExpressionOf("cos(x)**2 + sin(x)**2", {"x"}), {x}, {});
  auto pieces = Pieces::Cut(*plan, 1, 80000);
  ASSERT_TRUE(pieces.ok());
  for (int64_t i = 0; i < pieces->size(); ++i)
    EXPECT_EQ(pieces->At(i).plan.code->SerializeAsString(), plan->code->SerializeAsString());
  Check(ExpressionOf("cos(x)**2 + sin(x)**2", {"x"}), {x}, 80000);
}

}  // namespace
}  // namespace stride::ops
