#pragma once

#include <cstdint>
#include <optional>

#include "server/broker/compiled_module.h"
#include "server/wire/plan.pb.h"

// How operations run before their code is compiled (docs/decisions/0041): by blocks, on code that
// the product brings. Pure functions; any thread.
namespace stride::engine {

// Most elements that an operation runs by blocks before its code is compiled: some milliseconds.
inline constexpr int64_t kElementsWorthCode = 1 << 20;
// The cost of a launch in elements, since its program is prepared each time.
inline constexpr int64_t kLaunchElements = 1024;

// How an operation runs on a target before its code is compiled.
struct FirstTier {
  bool by_blocks = false;                  // false: not at all
  std::optional<wire::Code> plain_reduce;  // code of a reduction over values in memory
  int64_t elements = 0;
};

// `code`: of the task's only launch. `loops`: the target's block loops.
FirstTier FirstTierOf(const wire::Task& task, const wire::Code& code,
                      const broker::CompiledModule& loops);

}  // namespace stride::engine
