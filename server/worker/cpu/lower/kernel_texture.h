#pragma once

#include "absl/status/statusor.h"
#include "cpucuda/cpucuda.h"
#include "server/wire/plan.pb.h"
#include "server/worker/cpu/lower/arena_table.h"

namespace stride::cpu {

// The description that the handle of a launch's texture points to. `place` keeps its texels mapped.
// INTERNAL when the texels do not lie in the arena; the daemon sends no such task.
absl::StatusOr<cpucuda::Texture> MakeTexture(const ArenaTable& arenas, const wire::Texture& texture,
                                             Place* place);

}  // namespace stride::cpu
