#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/worker/codegen/program_text.h"

namespace stride::codegen {

// What both device kinds' elementwise text has in common.
struct ElementwiseText {
  std::string definitions;   // preamble, struct Launch, bodyScalars, body()
  std::string scalars_call;  // an expression for bodyScalars, from `launch`
  int rank = 1;
  size_t num_inputs = 0;
  std::vector<DType> dtypes;  // of the operands, inputs first
  std::vector<wire::Layout::Access> access;
  std::string index_type;    // of loop indices on CUDA
  bool takes_turns = false;  // body() has a last parameter, st_few_turns or st_any_turns
  bool uses_random = false;  // neighbours share a generator's block
};

// INTERNAL when the code does not fit together.
absl::StatusOr<ElementwiseText> PrepareElementwise(const wire::ElementwiseCode& code,
                                                   Target target);

}  // namespace stride::codegen
