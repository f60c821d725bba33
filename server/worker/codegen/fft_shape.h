#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/dtype.h"
#include "server/wire/plan.pb.h"

namespace stride::codegen {

// A FftLaunch as transforms along one axis after another, checked. INTERNAL where its fields do not
// fit one another; the daemon sends no such launch.
struct FftShape {
  struct Pass {
    wire::FftLaunch::Kind kind = wire::FftLaunch::KIND_UNSPECIFIED;
    int axis = 0;
    int64_t length = 0;
    std::vector<int64_t> extents;  // of the array that it makes
  };
  DType input_dtype = DType::kComplex128;
  DType output_dtype = DType::kComplex128;
  DType complex_dtype = DType::kComplex128;  // of what is between
  std::vector<int64_t> input_extents;        // of what is read of the input
  std::vector<Pass> passes;                  // in order; at least one
  const std::vector<int64_t>& output_extents() const { return passes.back().extents; }
};
absl::StatusOr<FftShape> ReadFft(const wire::FftLaunch& launch);

}  // namespace stride::codegen
