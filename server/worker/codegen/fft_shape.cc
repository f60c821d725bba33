#include "server/worker/codegen/fft_shape.h"

#include <algorithm>

#include "server/worker/codegen/launch_abi.h"

namespace stride::codegen {
namespace {

using Request = wire::FftLaunch;

bool HasGoodFields(const Request& launch) {
  const int rank = launch.extents_size();
  if (launch.kind() < Request::KIND_COMPLEX || launch.kind() > Request::KIND_COMPLEX_TO_REAL ||
      rank > kMaxRank || launch.axes_size() == 0 || launch.axes_size() != launch.lengths_size() ||
      launch.input().strides_size() != rank || launch.output().strides_size() != rank)
    return false;
  for (int64_t extent : launch.extents())
    if (extent < 0) return false;
  std::vector<bool> named(rank);
  for (int i = 0; i < launch.axes_size(); ++i) {
    const int axis = launch.axes(i);
    if (axis < 0 || axis >= rank || named[axis] || launch.lengths(i) < 1) return false;
    named[axis] = true;
  }
  return true;
}

// Requires dtypes that fit the output's.
bool ReadDTypes(const Request& launch, FftShape* shape) {
  const auto input = DTypeFromNumber(launch.input().dtype());
  const auto output = DTypeFromNumber(launch.output().dtype());
  if (!input || !output) return false;
  shape->input_dtype = *input;
  shape->output_dtype = *output;
  const bool real_output = launch.kind() == Request::KIND_COMPLEX_TO_REAL;
  const bool real_input = launch.kind() == Request::KIND_REAL_TO_COMPLEX;
  const bool single = *output == DType::kFloat32 || *output == DType::kComplex64;
  const DType real = single ? DType::kFloat32 : DType::kFloat64;
  shape->complex_dtype = single ? DType::kComplex64 : DType::kComplex128;
  return *output == (real_output ? real : shape->complex_dtype) &&
         *input == (real_input ? real : shape->complex_dtype);
}

}  // namespace

absl::StatusOr<FftShape> ReadFft(const Request& launch) {
  FftShape shape;
  if (!HasGoodFields(launch) || !ReadDTypes(launch, &shape))
    return absl::InternalError("a Fourier transform whose fields do not fit one another");
  shape.input_extents = {launch.extents().begin(), launch.extents().end()};
  // The part of a line that is cut off is not read, so that no intermediate array exceeds the
  // result.
  const int last = launch.axes_size() - 1;
  for (int i = 0; i <= last; ++i) {
    const bool half = launch.kind() == Request::KIND_COMPLEX_TO_REAL && i == last;
    int64_t& extent = shape.input_extents[launch.axes(i)];
    extent = std::min(extent, half ? launch.lengths(i) / 2 + 1 : launch.lengths(i));
  }
  std::vector<int64_t> extents = shape.input_extents;
  auto add = [&](Request::Kind kind, int index) {
    const int64_t length = launch.lengths(index);
    extents[launch.axes(index)] = kind == Request::KIND_REAL_TO_COMPLEX ? length / 2 + 1 : length;
    shape.passes.push_back({kind, launch.axes(index), length, extents});
  };
  // The axis with real numbers comes first or last; the others from last to first, as in NumPy.
  if (launch.kind() != Request::KIND_COMPLEX_TO_REAL) add(launch.kind(), last);
  for (int i = last - 1; i >= 0; --i) add(Request::KIND_COMPLEX, i);
  if (launch.kind() == Request::KIND_COMPLEX_TO_REAL) add(launch.kind(), last);
  return shape;
}

}  // namespace stride::codegen
