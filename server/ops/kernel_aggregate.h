#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/ops/plan.h"

namespace stride::ops {

// CUDA's limit of all parameters of a kernel together, in bytes.
inline constexpr uint32_t kMaxParameterBytes = 32764;

// Returns the plan's pointer to the array in a slot.
wire::Operand PointerTo(const ArrayInfo& array, uint32_t slot);

// Checks the sizes and offsets of a struct that a kernel receives by value: members lie within it
// and do not overlap. Errors have paths below `field`.
absl::Status CheckAggregate(const v1::KernelArgument::Aggregate& aggregate, std::string_view field);

// Builds the task's struct from an aggregate that passed CheckAggregate. `next_array` and
// `next_output` are the next free slots of arrays and new arrays; the call advances them.
absl::Status BindAggregate(const v1::KernelArgument::Aggregate& aggregate,
                           absl::Span<const Input> inputs, std::string_view field,
                           uint32_t* next_array, uint32_t* next_output,
                           wire::KernelArgument::Aggregate* bound);

}  // namespace stride::ops
