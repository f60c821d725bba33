#pragma once

#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "cpucuda/cpucuda.h"
#include "server/base/printed_text.h"
#include "server/wire/plan.pb.h"
#include "server/worker/cpu/lower/arena_table.h"
#include "server/worker/cpu/lower/loaded_module.h"
#include "server/worker/cpu/lower/work.h"

namespace stride::cpu {

class FftPlanCache;
using ModuleTable = std::map<uint64_t, std::shared_ptr<const LoadedModule>>;

// Inputs of lowering. Work pins all that it needs, except the pool and the cached plans, which live
// as long as the device.
struct LoweringContext {
  const ArenaTable* arenas;
  const ModuleTable* modules;
  cpucuda::ThreadPool* pool;
  FftPlanCache* fft_plans;  // used by the compute thread
  const ArenaTable* peers;  // other devices': for the inputs of elementwise launches
  PrintedText* printed;     // the task's text; used by work on the compute thread
};

// Lowers a task to work. On the command loop's thread; accesses no array. One function per kind of
// task, each in its own file; a graph's work consists of other kinds (lower_graph.h).
absl::StatusOr<Work> Lower(const LoweringContext& context, const wire::Task& task);

absl::StatusOr<Work> LowerElementwise(const LoweringContext& context,
                                      const wire::ElementwiseLaunch& launch);
absl::StatusOr<Work> LowerReduce(const LoweringContext& context, const wire::ReduceLaunch& launch);
absl::StatusOr<Work> LowerMatmul(const LoweringContext& context, const wire::MatmulLaunch& launch);
absl::StatusOr<Work> LowerKernel(const LoweringContext& context, const wire::KernelLaunch& launch);
absl::StatusOr<Work> LowerFft(const LoweringContext& context, const wire::FftLaunch& launch);
absl::StatusOr<Work> LowerLinalg(const LoweringContext& context, const wire::LinalgLaunch& launch);
absl::StatusOr<Work> LowerRoutine(const LoweringContext& context,
                                  const wire::RoutineLaunch& launch);
absl::StatusOr<Work> LowerZeroFill(const LoweringContext& context, const wire::ZeroFill& fill);
absl::StatusOr<Work> LowerCopyBytes(const LoweringContext& context, const wire::CopyBytes& copy);

// --- shared by them ---

absl::StatusOr<std::shared_ptr<const LoadedModule>> FindModule(const LoweringContext& context,
                                                               uint64_t module);
// Number of elements of the loop. Error when an extent is negative or the product overflows.
absl::StatusOr<int64_t> NumElements(absl::Span<const int64_t> extents);
// Piece size for splitting [0, count): at least `least` items, and small enough to balance the
// threads.
int64_t GrainFor(int64_t count, int64_t least, int num_threads);
// Work that does nothing.
Work NoWork();

}  // namespace stride::cpu
