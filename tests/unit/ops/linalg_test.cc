// Plans of linear algebra and of Fourier transforms: shapes, types, fields of errors.

#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/support/plan_helpers.h"

namespace stride::ops {
namespace {

using testing::Array;
using testing::ExpectRefused;
using testing::Good;
using Extents = std::vector<int64_t>;
using Function = v1::Linalg;

v1::Operation LinalgOf(Function::Function function, int num_operands, int num_outputs) {
  v1::Operation operation;
  operation.mutable_linalg()->set_function(function);
  for (int i = 0; i < num_operands; ++i) operation.mutable_linalg()->add_operands()->set_handle(1);
  for (int j = 0; j < num_outputs; ++j) operation.add_outputs()->set_handle(100 + j);
  return operation;
}

v1::Operation FftOf(v1::Fft::Kind kind, std::vector<int32_t> axes, std::vector<int64_t> lengths) {
  v1::Operation operation;
  operation.mutable_fft()->set_kind(kind);
  operation.mutable_fft()->mutable_input()->set_handle(1);
  for (int32_t axis : axes) operation.mutable_fft()->add_axes(axis);
  for (int64_t length : lengths) operation.mutable_fft()->add_lengths(length);
  operation.add_outputs()->set_handle(100);
  return operation;
}

std::vector<Extents> ShapesOf(const Plan& plan) {
  std::vector<Extents> shapes;
  for (const ArrayInfo& output : plan.outputs) shapes.push_back(output.shape);
  return shapes;
}

TEST(PlanLinalg, ShapesAndTypes) {
  const Input wide = Array(DType::kComplex64, {7, 3, 5});
  v1::Operation qr = LinalgOf(Function::FUNCTION_QR, 1, 2);
  EXPECT_EQ(ShapesOf(Good(qr, {wide})), (std::vector<Extents>{{7, 3, 3}, {7, 3, 5}}));
  const Input tall = Array(DType::kFloat32, {5, 3});
  EXPECT_EQ(ShapesOf(Good(qr, {tall})), (std::vector<Extents>{{5, 3}, {3, 3}}));
  qr.mutable_linalg()->set_full(true);
  EXPECT_EQ(ShapesOf(Good(qr, {tall})), (std::vector<Extents>{{5, 5}, {5, 3}}));
  v1::Operation svd = LinalgOf(Function::FUNCTION_SVD, 1, 3);
  const Plan plan = Good(svd, {wide});
  EXPECT_EQ(ShapesOf(plan), (std::vector<Extents>{{7, 3, 3}, {7, 3}, {7, 3, 5}}));
  EXPECT_EQ(plan.outputs[1].dtype, DType::kFloat32);
  EXPECT_EQ(plan.outputs[2].dtype, DType::kComplex64);
  const Plan lu = Good(LinalgOf(Function::FUNCTION_LU, 1, 2), {wide});
  EXPECT_EQ(lu.outputs[1], Contiguous(DType::kInt64, {7, 3}));
}

TEST(PlanLinalg, SolveBroadcastsBatches) {
  const v1::Operation solve = LinalgOf(Function::FUNCTION_SOLVE, 2, 1);
  const Input square = Array(DType::kFloat64, {2, 1, 4, 4});
  EXPECT_EQ(Good(solve, {square, Array(DType::kFloat64, {3, 4, 5})}).outputs[0].shape,
            (Extents{2, 3, 4, 5}));
  const Plan vector = Good(solve, {square, Array(DType::kFloat64, {4})});
  EXPECT_EQ(vector.outputs[0].shape, (Extents{2, 1, 4}));
  // Every matrix uses the same vector.
  const auto& strides = vector.task.linalg().inputs(1).strides();
  EXPECT_EQ(Extents(strides.begin(), strides.end()), (Extents{0, 0, 8, 0}));
}

TEST(PlanLinalg, ConvertsUnsupportedTypes) {
  const Plan integers =
      Good(LinalgOf(Function::FUNCTION_INVERSE, 1, 1), {Array(DType::kInt8, {2, 2})});
  EXPECT_EQ(integers.outputs[0].dtype, DType::kFloat64);
  ASSERT_EQ(integers.converted_inputs.size(), 1u);
  EXPECT_EQ(integers.converted_inputs[0], DType::kFloat64);
  const Plan mixed = Good(LinalgOf(Function::FUNCTION_SOLVE, 2, 1),
                          {Array(DType::kFloat32, {2, 2}), Array(DType::kComplex64, {2})});
  ASSERT_EQ(mixed.converted_inputs.size(), 2u);
  EXPECT_EQ(mixed.converted_inputs[0], DType::kComplex64);
  EXPECT_FALSE(mixed.converted_inputs[1].has_value());
  EXPECT_TRUE(Good(LinalgOf(Function::FUNCTION_INVERSE, 1, 1), {Array(DType::kFloat32, {2, 2})},
                   Array(DType::kFloat64, {2, 2}))
                  .through_new_output);
}

TEST(PlanLinalg, RefusesWithTheField) {
  const v1::Operation inverse = LinalgOf(Function::FUNCTION_INVERSE, 1, 1);
  const std::string field = "linalg.operands[0]";
  ExpectRefused(inverse, {Array(DType::kFloat32, {3})}, v1::ERROR_REASON_SHAPE_MISMATCH, field);
  ExpectRefused(inverse, {Array(DType::kFloat32, {3, 4})}, v1::ERROR_REASON_SHAPE_MISMATCH, field);
  ExpectRefused(inverse, {Array(DType::kFloat16, {3, 3})}, v1::ERROR_REASON_DATA_TYPE_MISMATCH,
                field);
  ExpectRefused(inverse, {Input()}, v1::ERROR_REASON_INVALID_FIELD, field);
  ExpectRefused(inverse, {Array(DType::kFloat32, {3, 3})}, v1::ERROR_REASON_SHAPE_MISMATCH,
                "outputs[0]", Array(DType::kFloat32, {3}));
  ExpectRefused(LinalgOf(Function::FUNCTION_INVERSE, 2, 1),
                {Array(DType::kFloat32, {3, 3}), Array(DType::kFloat32, {3, 3})},
                v1::ERROR_REASON_ARGUMENT_COUNT, "linalg.operands");
  ExpectRefused(LinalgOf(Function::FUNCTION_QR, 1, 1), {Array(DType::kFloat32, {3, 3})},
                v1::ERROR_REASON_ARGUMENT_COUNT, "outputs");
  ExpectRefused(LinalgOf(Function::FUNCTION_UNSPECIFIED, 1, 1), {Array(DType::kFloat32, {3, 3})},
                v1::ERROR_REASON_INVALID_FIELD, "linalg.function");
  v1::Operation full = inverse;
  full.mutable_linalg()->set_full(true);
  ExpectRefused(full, {Array(DType::kFloat32, {3, 3})}, v1::ERROR_REASON_INVALID_FIELD,
                "linalg.full");
  const v1::Operation solve = LinalgOf(Function::FUNCTION_SOLVE, 2, 1);
  for (const Extents& right : {Extents{4}, Extents{2, 3}, Extents{}}) {
    ExpectRefused(solve, {Array(DType::kFloat32, {3, 3}), Array(DType::kFloat32, right)},
                  v1::ERROR_REASON_SHAPE_MISMATCH, "linalg.operands[1]");
  }
  ExpectRefused(solve, {Array(DType::kFloat32, {2, 3, 3}), Array(DType::kFloat32, {5, 3, 1})},
                v1::ERROR_REASON_SHAPE_MISMATCH, "linalg.operands[1]");
}

TEST(PlanLinalg, OversizedMatricesAreRefused) {
  ArrayInfo rows = Contiguous(DType::kFloat32, {int64_t{1} << 31, 1});
  v1::Operation values = LinalgOf(Function::FUNCTION_SVD, 1, 1);
  values.mutable_linalg()->set_values_only(true);
  ExpectRefused(values, {rows}, v1::ERROR_REASON_SIZE_LIMIT, "linalg.operands");
}

TEST(PlanFft, ShapesTypesAndScale) {
  const Input real = Array(DType::kFloat32, {3, 8, 6}), complex = Array(DType::kComplex128, {3, 5});
  const Plan half = Good(FftOf(v1::Fft::KIND_REAL_TO_COMPLEX, {0, 2}, {}), {real});
  EXPECT_EQ(half.outputs[0], Contiguous(DType::kComplex64, {3, 8, 4}));
  EXPECT_EQ(half.task.fft().scale(), 1);
  const Plan back = Good(FftOf(v1::Fft::KIND_COMPLEX_TO_REAL, {-1}, {}), {complex});
  EXPECT_EQ(back.outputs[0], Contiguous(DType::kFloat64, {3, 8}));
  EXPECT_EQ(back.task.fft().scale(), 1.0 / 8);
  const Plan cut = Good(FftOf(v1::Fft::KIND_COMPLEX, {1, 0}, {2, 9}), {complex});
  EXPECT_EQ(cut.outputs[0].shape, (Extents{9, 2}));
  v1::Operation ortho = FftOf(v1::Fft::KIND_COMPLEX, {}, {3, 12});
  ortho.mutable_fft()->set_norm(v1::Fft::NORM_ORTHO);
  EXPECT_EQ(Good(ortho, {complex}).task.fft().scale(), 1.0 / 6);
  EXPECT_EQ(Good(FftOf(v1::Fft::KIND_COMPLEX, {}, {}), {real}).converted_inputs[0],
            DType::kComplex64);
  EXPECT_EQ(Good(FftOf(v1::Fft::KIND_REAL_TO_COMPLEX, {}, {}), {Array(DType::kInt16, {4})})
                .converted_inputs[0],
            DType::kFloat64);
}

TEST(PlanFft, RefusesWithTheField) {
  const Input complex = Array(DType::kComplex64, {3, 5});
  const auto kind = v1::Fft::KIND_COMPLEX;
  ExpectRefused(FftOf(kind, {2}, {}), {complex}, v1::ERROR_REASON_INVALID_FIELD, "fft.axes");
  ExpectRefused(FftOf(kind, {1, -1}, {}), {complex}, v1::ERROR_REASON_INVALID_FIELD, "fft.axes");
  ExpectRefused(FftOf(kind, {1}, {0}), {complex}, v1::ERROR_REASON_INVALID_FIELD, "fft.lengths");
  ExpectRefused(FftOf(kind, {1}, {4, 4}), {complex}, v1::ERROR_REASON_ARGUMENT_COUNT,
                "fft.lengths");
  ExpectRefused(FftOf(kind, {}, {}), {Array(DType::kFloat32, {})}, v1::ERROR_REASON_SHAPE_MISMATCH,
                "fft.input");
  ExpectRefused(FftOf(kind, {0}, {}), {Array(DType::kFloat32, {0})}, v1::ERROR_REASON_INVALID_FIELD,
                "fft.input");
  ExpectRefused(FftOf(v1::Fft::KIND_COMPLEX_TO_REAL, {1}, {}), {Array(DType::kFloat32, {3, 1})},
                v1::ERROR_REASON_INVALID_FIELD, "fft.input");
  ExpectRefused(FftOf(v1::Fft::KIND_REAL_TO_COMPLEX, {1}, {}), {complex},
                v1::ERROR_REASON_DATA_TYPE_MISMATCH, "fft.input");
  ExpectRefused(FftOf(v1::Fft::KIND_UNSPECIFIED, {1}, {}), {complex},
                v1::ERROR_REASON_INVALID_FIELD, "fft.kind");
  v1::Operation inverse = FftOf(v1::Fft::KIND_COMPLEX_TO_REAL, {1}, {});
  inverse.mutable_fft()->set_inverse(true);
  ExpectRefused(inverse, {complex}, v1::ERROR_REASON_INVALID_FIELD, "fft.inverse");
  ExpectRefused(FftOf(kind, {1}, {int64_t{1} << 62}), {complex}, v1::ERROR_REASON_SIZE_LIMIT,
                "outputs[0]");
}

}  // namespace
}  // namespace stride::ops
