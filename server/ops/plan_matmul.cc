#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/op_table.h"
#include "server/ops/operation_kind.h"
#include "server/ops/promotion.h"
#include "server/ops/reduce_plan.h"

namespace stride::ops {
namespace {

// An operand with the axis that NumPy adds to a vector.
struct Matrix {
  ArrayInfo array;
  bool is_vector = false;
  Shape batch;
};

absl::StatusOr<Matrix> ReadMatrix(const Input& input, const char* field, bool left) {
  if (!input)
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                        "matmul needs an array, not a scalar");
  Matrix matrix{*input};
  if (input->shape.empty()) {
    return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, field,
                        "matmul needs at least one axis; for a product with a scalar use multiply");
  }
  if (input->shape.size() == 1) {
    matrix.is_vector = true;
    size_t where = left ? 0 : 1;
    matrix.array.shape.insert(matrix.array.shape.begin() + where, 1);
    matrix.array.strides.insert(matrix.array.strides.begin() + where, 0);
  }
  matrix.batch.assign(matrix.array.shape.begin(), matrix.array.shape.end() - 2);
  return matrix;
}

// Strides of the batch axes, then row, then column.
std::vector<int64_t> StridesOf(const Matrix& matrix, const Shape& batch) {
  Shape shape = batch;
  shape.insert(shape.end(), matrix.array.shape.end() - 2, matrix.array.shape.end());
  std::vector<int64_t> strides = BroadcastStrides(matrix.array, shape);
  // Rows and columns of length one keep their stride: libraries want a plausible leading dimension.
  size_t rank = matrix.array.shape.size();
  strides[strides.size() - 2] = matrix.array.strides[rank - 2];
  strides[strides.size() - 1] = matrix.array.strides[rank - 1];
  return strides;
}

// Whether our own loop makes sums of this type, of up to 32 bits, of bytes as they are: the types
// that occur, since each is compiled with the product.
bool TakesBytes(DType left, DType right, DType dtype) {
  const auto is_byte = [](DType one) { return one == DType::kInt8 || one == DType::kUInt8; };
  if (!is_byte(left) || !is_byte(right)) return false;
  return dtype == DType::kInt32 || dtype == DType::kUInt32 ||
         (dtype == DType::kInt16 && left != right);
}

// The copies before and after, since libraries and our own loop take one type and write rows
// without gaps.
void PlanCopies(const ArrayInfo& left, const ArrayInfo& right, DType dtype, Plan* plan) {
  const bool fits = left.dtype == dtype && right.dtype == dtype;
  if (!fits && !TakesBytes(left.dtype, right.dtype, dtype)) {
    for (const ArrayInfo* input : {&left, &right}) {
      plan->converted_inputs.push_back(input->dtype == dtype ? std::nullopt
                                                             : std::optional<DType>(dtype));
    }
  }
  const ArrayInfo& output = plan->outputs[0];
  plan->through_new_output = output.dtype != dtype || !output.IsContiguous();
}

// Rows that lie without gaps, by one column: each element is the sum of a row's products, for which
// a reduction reads the matrix at the memory's rate (cuBLAS: a tenth slower on an H200; a vector by
// a vector, which the library takes as a matrix by a vector, 1.6 of its own dot on an H100).
bool IsRowsByVector(const Matrix& left, const Matrix& right, DType dtype) {
  const bool of_vector = right.is_vector && left.array.dtype == right.array.dtype;
  return right.array.shape.back() == 1 && (!left.is_vector || of_vector) &&
         left.array.strides.back() == ItemSize(left.array.dtype) &&
         (IsFloat(dtype) || IsComplex(dtype));
}

Plan PlanRowsByVector(const Matrix& left, const Matrix& right, const Shape& batch, DType dtype,
                      ArrayInfo output) {
  const size_t rank = right.array.shape.size();
  ArrayInfo row = right.array;
  std::swap(row.shape[rank - 2], row.shape[rank - 1]);
  std::swap(row.strides[rank - 2], row.strides[rank - 1]);
  ArrayInfo rows = left.array;
  if (left.is_vector) {  // then so is the other, and there is no batch
    for (ArrayInfo* one : {&rows, &row}) {
      one->shape.erase(one->shape.end() - 2);
      one->strides.erase(one->strides.end() - 2);
    }
  }
  Shape shape = batch;
  shape.insert(shape.end(), rows.shape.end() - (left.is_vector ? 1 : 2), rows.shape.end());
  ReduceSpec spec;
  spec.inputs = {BroadcastTo(rows, shape), BroadcastTo(row, shape)};
  spec.is_reduced.assign(shape.size(), false);
  spec.is_reduced.back() = true;
  // The one column stays as an axis, unless it was a vector.
  spec.keep_dims = !right.is_vector;
  spec.combine = wire::ReduceCode::COMBINE_ADD;
  spec.accumulator = ComputeType(dtype);
  const Value a = spec.map.Cast(spec.map.Input(0, left.array.dtype), spec.accumulator);
  const Value b = spec.map.Cast(spec.map.Input(1, right.array.dtype), spec.accumulator);
  spec.mapped = spec.map.Op("multiply", {a, b}, spec.accumulator);
  spec.finished = spec.finish.Cast(spec.finish.Input(0, spec.accumulator), output.dtype);
  spec.output = std::move(output);
  return MakeReducePlan(std::move(spec));
}

}  // namespace

absl::StatusOr<Plan> PlanMatmul(const v1::Matmul& matmul, Inputs inputs, const Input& existing) {
  auto left = ReadMatrix(inputs[0], "matmul.left", true);
  if (!left.ok()) return left.status();
  auto right = ReadMatrix(inputs[1], "matmul.right", false);
  if (!right.ok()) return right.status();
  size_t left_rank = left->array.shape.size(), right_rank = right->array.shape.size();
  int64_t m = left->array.shape[left_rank - 2], k = left->array.shape[left_rank - 1];
  int64_t n = right->array.shape[right_rank - 1];
  if (right->array.shape[right_rank - 2] != k) {
    return InvalidField(
        v1::ERROR_REASON_SHAPE_MISMATCH, "matmul.right",
        absl::StrCat("the left's last axis and the right's last but one (a vector's only one) must "
                     "be equal: ",
                     ToString(inputs[0]->shape), " and ", ToString(inputs[1]->shape)));
  }
  auto batch = BroadcastShapes({left->batch, right->batch}, "matmul");
  if (!batch.ok()) return batch.status();
  auto data_type = ReadDataType(matmul.data_type(), "matmul.data_type");
  if (!data_type.ok()) return data_type.status();
  const DType dtype = data_type->value_or(PromoteTypes(left->array.dtype, right->array.dtype));
  Shape shape = *batch;
  if (!left->is_vector) shape.push_back(m);
  if (!right->is_vector) shape.push_back(n);
  auto output = ChooseOutput(dtype, shape, existing);
  if (!output.ok()) return output.status();

  if (IsRowsByVector(*left, *right, dtype))
    return PlanRowsByVector(*left, *right, *batch, dtype, *output);

  Plan plan;
  plan.outputs.push_back(*output);
  PlanCopies(left->array, right->array, dtype, &plan);
  if (!plan.converted_inputs.empty() || plan.through_new_output) return plan;
  if (IsBool(dtype) || IsInteger(dtype)) {
    auto* code = plan.code.emplace().mutable_matmul();
    // The low bits are those of both.
    const DType sums =
        dtype == DType::kUInt32 && left->array.dtype != dtype ? DType::kInt32 : dtype;
    code->set_dtype(static_cast<int>(sums));
    code->set_left(static_cast<int>(left->array.dtype));
    code->set_right(static_cast<int>(right->array.dtype));
  }
  auto* launch = plan.task.mutable_matmul();
  launch->set_m(m);
  launch->set_n(n);
  launch->set_k(k);
  launch->mutable_batch_extents()->Assign(batch->begin(), batch->end());
  *launch->mutable_left() = MakeOperand(0, left->array, StridesOf(*left, *batch));
  *launch->mutable_right() = MakeOperand(1, right->array, StridesOf(*right, *batch));
  Shape full = *batch;
  full.push_back(m);
  full.push_back(n);
  *launch->mutable_output() = MakeOperand(2, *output, Contiguous(dtype, full).strides);
  plan.bytes =
      static_cast<double>(inputs[0]->size_bytes() + inputs[1]->size_bytes() + output->size_bytes());
  plan.flops = 2.0 * static_cast<double>(output->num_elements()) * static_cast<double>(k);
  return plan;
}

namespace {

bool MatmulKey(const OperationView& operation, const TenantId&, KeyWriter& key) {
  key.AddOperand(operation->matmul().left());
  key.AddOperand(operation->matmul().right());
  key.Add(operation->matmul().data_type());
  return true;
}

// Loop axes: the batch, rows, columns, and what is summed over.
absl::StatusOr<LoopAxes> DivideMatmul(const v1::Operation&, absl::Span<const SpreadArray> inputs,
                                      absl::Span<const Shape>) {
  const std::vector<int64_t>&left = inputs[0].shape, &right = inputs[1].shape;
  const int left_rank = static_cast<int>(left.size()), right_rank = static_cast<int>(right.size());
  const bool has_rows = left_rank > 1, has_columns = right_rank > 1;
  const int batch = std::max({left_rank, right_rank, 2}) - 2;
  LoopAxes loop;
  std::vector<int> a(batch + 3, -1), b(batch + 3, -1), c(batch + 3, -1);
  for (int i = 0; i < batch; ++i) {
    const int in_left = i - (batch - (left_rank - 2)), in_right = i - (batch - (right_rank - 2));
    const int64_t of_left = has_rows && in_left >= 0 ? left[in_left] : 1;
    const int64_t of_right = has_columns && in_right >= 0 ? right[in_right] : 1;
    const int64_t extent = of_left == 1 ? of_right : of_left;
    if (has_rows && in_left >= 0 && of_left == extent) a[i] = in_left;
    if (has_columns && in_right >= 0 && of_right == extent) b[i] = in_right;
    c[i] = i;
  }
  if (has_rows) {
    a[batch] = left_rank - 2;
    c[batch] = batch;
  }
  if (has_columns) {
    b[batch + 1] = right_rank - 1;
    c[batch + 1] = batch + (has_rows ? 1 : 0);
  }
  a[batch + 2] = left_rank - 1;
  b[batch + 2] = has_columns ? right_rank - 2 : 0;
  loop.input_axes = {a, b};
  loop.output_axes = {c};
  return loop;
}

// Vectors become matrices, and the axis that they lack goes from the result.
absl::Status BatchMatmul(Batcher& batcher, v1::Operation* operation) {
  const Batched left = *batcher.Find(operation->matmul().left());
  const Batched right = *batcher.Find(operation->matmul().right());
  const bool left_vector = left.rank() == 1, right_vector = right.rank() == 1;
  if (left.rank() == 0 || right.rank() == 0) return batcher.NoRule(*operation);
  const size_t rank = std::max({left.rank(), right.rank(), size_t{2}});
  auto matrix = [&](const Batched& array, bool is_left) -> absl::StatusOr<Batched> {
    Batched full = array;
    if (array.rank() == 1) {
      Shape shape = array.info.shape;
      shape.insert(shape.end() - (is_left ? 1 : 0), 1);
      auto reshaped = batcher.Reshaped(array, shape);
      if (!reshaped.ok()) return reshaped.status();
      full = *reshaped;
    }
    return batcher.WithRank(full, rank);
  };
  auto a = matrix(left, true);
  if (!a.ok()) return a.status();
  auto b = matrix(right, false);
  if (!b.ok()) return b.status();
  v1::Operation product;
  product.mutable_matmul()->mutable_left()->set_handle(a->handle);
  product.mutable_matmul()->mutable_right()->set_handle(b->handle);
  product.mutable_matmul()->set_data_type(operation->matmul().data_type());
  const uint64_t output = operation->outputs(0).handle();
  product.add_outputs()->set_handle(left_vector || right_vector ? batcher.NewHandle() : output);
  auto made = batcher.Emit(std::move(product), {a->info, b->info}, true);
  if (!made.ok()) return made.status();
  if (left_vector || right_vector) {
    Shape shape = made->info.shape;
    if (right_vector) shape.pop_back();
    if (left_vector) shape.erase(shape.end() - (right_vector ? 1 : 2));
    made = batcher.Reshaped(*made, shape);
    if (!made.ok()) return made.status();
  }
  made->batched = true;
  batcher.SetResult(output, *std::move(made));
  operation->clear_kind();  // nothing is left to do
  return absl::OkStatus();
}

}  // namespace

const OperationKind kMatmulKind = {
    .name = "matmul",
    .operands = Reads<&v1::Operation::matmul, &v1::Matmul::left, &v1::Matmul::right>,
    .plan = PlanBy<&v1::Operation::matmul, PlanMatmul>,
    .rules = {OneResult, MatmulKey, BatchMatmul, DivideMatmul},
};

}  // namespace stride::ops
