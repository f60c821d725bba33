#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "server/wire/plan.pb.h"

namespace stride::simulation {

// What a device would do with one task, on int64 elements. `code` is null for tasks without a
// module. `at` gives the memory of an arena at an offset, or null when it lies outside. Only
// elements `first` to `last` of the output, in halves of one: a task can be cut off between. An
// empty string, or what is wrong.
using Memory = std::function<char*(uint64_t arena, uint64_t offset, uint64_t size)>;
enum class Half { kFirst, kSecond };
std::string Compute(const wire::Task& task, const wire::Code* code, Half half, const Memory& at);

}  // namespace stride::simulation
