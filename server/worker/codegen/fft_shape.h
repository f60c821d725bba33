#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/dtype.h"
#include "server/wire/plan.pb.h"

namespace stride::codegen {

// A checked FftLaunch as transforms along one axis after another. INTERNAL for inconsistent fields;
// the daemon sends no such launch.
struct FftShape {
  struct Pass {
    wire::FftLaunch::Kind kind = wire::FftLaunch::KIND_UNSPECIFIED;
    int axis = 0;
    int64_t length = 0;
    std::vector<int64_t> extents;  // extents of the pass's result
  };
  DType input_dtype = DType::kComplex128;
  DType output_dtype = DType::kComplex128;
  DType complex_dtype = DType::kComplex128;  // dtype of intermediate arrays
  std::vector<int64_t> input_extents;        // the part of the input that is read
  std::vector<Pass> passes;                  // in order; at least one
  const std::vector<int64_t>& output_extents() const { return passes.back().extents; }
};
absl::StatusOr<FftShape> ReadFft(const wire::FftLaunch& launch);

}  // namespace stride::codegen
