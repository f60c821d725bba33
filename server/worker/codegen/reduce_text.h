#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/worker/codegen/program_text.h"

namespace stride::codegen {

// Parts of a reduction's text that both device kinds share.
struct ReduceText {
  // Preamble, struct Launch, map(), finish(), struct Acc with st_identity(), st_combine(), and
  //   Acc mapped(scalars, values..., st_i64 index)         value of one element with these inputs
  //   Acc load_mapped(scalars, pointers..., st_i64 index)  the same, for inputs at `pointers`
  //   void store_result(launch, finish scalars, st_i64 kept, Acc)
  std::string definitions;
  std::string map_scalars_call, finish_scalars_call;  // from `launch` (a reference)
  int kept_rank = 0, reduced_rank = 0;
  std::vector<DType> dtypes;  // inputs' dtypes
  std::vector<wire::Layout::Access> access;
  std::vector<wire::Layout::Access> inner_access;  // along the innermost loop
  bool has_index = false;                          // Acc has an index; below zero: no element yet
  bool finishes_index = false;                     // ARGMIN, ARGMAX: the index is the result
  bool selects = false;                            // the map selects elements
  bool counts = false;  // Acc counts the selected elements; finish takes the number too
  bool is_moments = false;
  bool stores_accumulator = false, reads_accumulator = false;
  bool single = false;  // each element is one value, and all are selected
  bool kept_contiguous = false;
  // The array of the computed elements, which decides the order of combination; without it, the
  // inputs decide.
  struct Computed {
    DType dtype = DType::kBool;
    wire::Layout::Access access = wire::Layout::ACCESS_STRIDED;
  };
  std::optional<Computed> computed;
  int row_rank = 0;  // reduced axes of the array, or of the inputs
  int row_axes = 0;  // the inputs' axes that form the last of these
};

// Accumulators that `<` orders, except NaN.
constexpr bool IsNumber(DType dtype) {
  return IsBool(dtype) || IsInteger(dtype) || dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

absl::StatusOr<ReduceText> PrepareReduce(const wire::ReduceCode& code, Target target);

}  // namespace stride::codegen
