#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/ops/plan.h"

namespace stride::ops {

// CUDA's bound on all parameters of a kernel together.
inline constexpr uint32_t kMaxParameterBytes = 32764;

// The plan's pointer to an array in that slot.
wire::Operand PointerTo(const ArrayInfo& array, uint32_t slot);

// Sizes and places of a struct that a kernel gets by value, with paths below `field`: members lie
// within it and apart from each other.
absl::Status CheckAggregate(const v1::KernelArgument::Aggregate& aggregate, std::string_view field);

// The struct for the task. `next_array` and `next_output` are the slots of its first array and new
// array, and go on past the last. The aggregate has passed CheckAggregate.
absl::Status BindAggregate(const v1::KernelArgument::Aggregate& aggregate,
                           absl::Span<const Input> inputs, std::string_view field,
                           uint32_t* next_array, uint32_t* next_output,
                           wire::KernelArgument::Aggregate* bound);

}  // namespace stride::ops
