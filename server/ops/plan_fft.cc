#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/operation_kind.h"
#include "server/ops/routine_plan.h"

namespace stride::ops {
namespace {

// The input's type for the transform.
DType InputType(v1::Fft::Kind kind, DType dtype) {
  const bool is_single = dtype == DType::kFloat32 || dtype == DType::kFloat16 ||
                         dtype == DType::kBFloat16 || dtype == DType::kComplex64;
  if (kind == v1::Fft::KIND_REAL_TO_COMPLEX) return is_single ? DType::kFloat32 : DType::kFloat64;
  return is_single ? DType::kComplex64 : DType::kComplex128;
}

DType OutputType(v1::Fft::Kind kind, DType input) {
  const bool is_single = input == DType::kFloat32 || input == DType::kComplex64;
  if (kind == v1::Fft::KIND_COMPLEX_TO_REAL) return is_single ? DType::kFloat32 : DType::kFloat64;
  return is_single ? DType::kComplex64 : DType::kComplex128;
}

// In the request's order, since the last is special.
absl::StatusOr<std::vector<int>> ReadAxes(const v1::Fft& fft, size_t rank) {
  std::vector<int> axes;
  if (fft.axes().empty()) {
    for (size_t axis = 0; axis < rank; ++axis) axes.push_back(static_cast<int>(axis));
  }
  for (int32_t one : fft.axes()) {
    auto axis = NormalizeAxis(one, rank, "fft.axes");
    if (!axis.ok()) return axis.status();
    axes.push_back(static_cast<int>(*axis));
    if (std::count(axes.begin(), axes.end(), axes.back()) > 1) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "fft.axes",
                          absl::StrCat("an axis is named twice: ", one));
    }
  }
  if (!axes.empty()) return axes;
  return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, "fft.input",
                      "an array without axes has no transform");
}

absl::StatusOr<std::vector<int64_t>> ReadLengths(const v1::Fft& fft, const Shape& shape,
                                                 const std::vector<int>& axes) {
  std::vector<int64_t> lengths(fft.lengths().begin(), fft.lengths().end());
  if (!lengths.empty() && lengths.size() != axes.size()) {
    return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, "fft.lengths",
                        absl::StrCat("a length is needed for each axis, or none at all. Axes: ",
                                     axes.size(), ", lengths: ", lengths.size()));
  }
  if (lengths.empty()) {
    for (int axis : axes) lengths.push_back(shape[axis]);
    if (fft.kind() == v1::Fft::KIND_COMPLEX_TO_REAL) lengths.back() = 2 * (lengths.back() - 1);
  }
  for (int64_t length : lengths) {
    if (length >= 1) continue;
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD,
                        fft.lengths().empty() ? "fft.input" : "fft.lengths",
                        absl::StrCat("a transform has at least one element: ", length));
  }
  return lengths;
}

// Whether the sum is over exp(+...).
bool IsInverse(const v1::Fft& fft) {
  return fft.kind() == v1::Fft::KIND_COMPLEX_TO_REAL || fft.inverse();
}

double ScaleOf(const v1::Fft& fft, const std::vector<int64_t>& lengths) {
  double count = 1;
  for (int64_t length : lengths) count *= static_cast<double>(length);
  if (fft.norm() == v1::Fft::NORM_ORTHO) return 1 / std::sqrt(count);
  const bool scaled = (fft.norm() == v1::Fft::NORM_FORWARD) != IsInverse(fft);
  return scaled ? 1 / count : 1;
}

absl::Status CheckFields(const v1::Fft& fft) {
  if (fft.kind() < v1::Fft::KIND_COMPLEX || fft.kind() > v1::Fft::KIND_COMPLEX_TO_REAL) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "fft.kind",
                        absl::StrCat("there is no such kind: ", fft.kind()));
  }
  if (fft.norm() < 0 || fft.norm() > v1::Fft::NORM_FORWARD) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "fft.norm",
                        absl::StrCat("there is no such norm: ", fft.norm()));
  }
  if (fft.inverse() && fft.kind() != v1::Fft::KIND_COMPLEX) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "fft.inverse",
                        "the kind sets the direction; leave this unset");
  }
  return absl::OkStatus();
}

absl::StatusOr<Plan> PlanFft(const v1::Fft& fft, Inputs inputs, const Input& existing) {
  if (auto s = CheckFields(fft); !s.ok()) return s;
  auto input = NeedArray(inputs[0], "fft.input");
  if (!input.ok()) return input.status();
  if (fft.kind() == v1::Fft::KIND_REAL_TO_COMPLEX && IsComplex(input->dtype)) {
    return InvalidField(
        v1::ERROR_REASON_DATA_TYPE_MISMATCH, "fft.input",
        absl::StrCat("the transform of real numbers takes no ", std::string(Name(input->dtype))));
  }
  auto axes = ReadAxes(fft, input->shape.size());
  if (!axes.ok()) return axes.status();
  auto lengths = ReadLengths(fft, input->shape, *axes);
  if (!lengths.ok()) return lengths.status();
  const DType in_type = InputType(fft.kind(), input->dtype);
  const DType out_type = OutputType(fft.kind(), in_type);
  Shape shape = input->shape;
  for (size_t i = 0; i < axes->size(); ++i) shape[(*axes)[i]] = (*lengths)[i];
  if (fft.kind() == v1::Fft::KIND_REAL_TO_COMPLEX) shape[axes->back()] = lengths->back() / 2 + 1;
  auto output = ChooseOutput(out_type, shape, existing);
  if (!output.ok()) return output.status();

  Plan plan;
  plan.outputs.push_back(*output);
  if (input->dtype != in_type) plan.converted_inputs.push_back(in_type);
  plan.through_new_output = output->dtype != out_type || !output->IsContiguous();
  if (!plan.converted_inputs.empty() || plan.through_new_output) return plan;
  auto* launch = plan.task.mutable_fft();
  // Kept apart from the contract's, with the same numbers.
  launch->set_kind(static_cast<wire::FftLaunch::Kind>(fft.kind()));
  launch->mutable_extents()->Assign(input->shape.begin(), input->shape.end());
  launch->mutable_axes()->Assign(axes->begin(), axes->end());
  launch->mutable_lengths()->Assign(lengths->begin(), lengths->end());
  launch->set_inverse(fft.inverse());
  launch->set_scale(ScaleOf(fft, *lengths));
  *launch->mutable_input() = MakeOperand(0, *input, input->strides);
  *launch->mutable_output() = MakeOperand(1, *output, Contiguous(out_type, shape).strides);
  plan.bytes = static_cast<double>(input->size_bytes() + output->size_bytes());
  double log_length = 0;
  for (int64_t length : *lengths) log_length += std::log2(static_cast<double>(length));
  plan.flops = 5 * static_cast<double>(output->num_elements()) * (log_length + 1);
  return plan;
}

absl::Status BatchFft(Batcher& batcher, v1::Operation* operation) {
  auto* fft = operation->mutable_fft();
  const size_t rank = batcher.Find(fft->input())->rank();
  if (rank == 0) return batcher.NoRule(*operation);
  std::vector<int32_t> axes(fft->axes().begin(), fft->axes().end());
  if (axes.empty()) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  fft->clear_axes();
  for (int32_t given : axes) {
    auto axis = batcher.Shifted(given, rank, "fft.axes");
    if (!axis.ok()) return axis.status();
    fft->add_axes(*axis);
  }
  return absl::OkStatus();
}

}  // namespace

const OperationKind kFftKind = {
    .name = "fft",
    .operands = Reads<&v1::Operation::fft, &v1::Fft::input>,
    .plan = PlanBy<&v1::Operation::fft, PlanFft>,
    .rules = {OneResult, WholeKey, BatchFft, Undivided},
    .lists =
        Bounded<&v1::Operation::fft, kMaxListedAxes, &v1::Fft::axes_size, &v1::Fft::lengths_size>,
};

}  // namespace stride::ops
