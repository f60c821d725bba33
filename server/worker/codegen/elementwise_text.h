#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/worker/codegen/program_text.h"

namespace stride::codegen {

// Parts of elementwise text that both device kinds share.
struct ElementwiseText {
  std::string definitions;   // preamble, struct Launch, bodyScalars, body()
  std::string scalars_call;  // an expression for bodyScalars, from `launch`
  int rank = 1;
  size_t num_inputs = 0;
  std::vector<DType> dtypes;  // operands' dtypes, inputs first
  std::vector<wire::Layout::Access> access;
  std::string index_type;    // type of loop indices on CUDA
  bool takes_turns = false;  // body() has a last parameter, st_few_turns or st_any_turns
  bool uses_random = false;  // neighbouring elements share a generator's block
};

// INTERNAL when the code is inconsistent.
absl::StatusOr<ElementwiseText> PrepareElementwise(const wire::ElementwiseCode& code,
                                                   Target target);

}  // namespace stride::codegen
