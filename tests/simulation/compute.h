#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "server/wire/plan.pb.h"

namespace stride::simulation {

// Simulates one task of a device on int64 elements. `code` is null for tasks without a module. `at`
// returns the memory of an arena at an offset, or null when it lies outside. Computes only elements
// `first` to `last` of the output, in halves of one: a task can be interrupted between. Returns an
// empty string, or the error.
using Memory = std::function<char*(uint64_t arena, uint64_t offset, uint64_t size)>;
enum class Half { kFirst, kSecond };
std::string Compute(const wire::Task& task, const wire::Code* code, Half half, const Memory& at);

}  // namespace stride::simulation
