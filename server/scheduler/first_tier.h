#pragma once

#include <cstdint>
#include <optional>

#include "server/broker/compiled_module.h"
#include "server/wire/plan.pb.h"

// How operations run before their code is compiled (docs/decisions/0041): by blocks, on code that
// the product brings. Pure functions; any thread.
namespace stride::scheduler {

// Elements that an operation may run by blocks before its code is compiled: some milliseconds.
inline constexpr int64_t kElementsWorthCode = 1 << 20;
// A launch counts as some elements, for its program is made ready each time.
inline constexpr int64_t kLaunchElements = 1024;

// How an operation runs on a target before its code is compiled.
struct FirstTier {
  bool by_blocks = false;                  // false: not at all
  std::optional<wire::Code> plain_reduce;  // of a reduction: of values as they lie in memory
  int64_t elements = 0;
};

// `code`: of the task's one launch. `loops`: the target's block loops.
FirstTier FirstTierOf(const wire::Task& task, const wire::Code& code,
                      const broker::CompiledModule& loops);

}  // namespace stride::scheduler
