#include "absl/strings/str_cat.h"
#include "server/worker/codegen/launch_abi.h"
#include "server/worker/codegen/routine_fault.h"
#include "server/worker/cpu/lower/lowering.h"
#include "server/worker/cpu/lower/scratch.h"

namespace stride::cpu {
namespace {

// A block's item is a thousand elements or more; a thread's is one or a few.
constexpr int64_t kLeastItems = 4096;

int64_t Grain(const wire::RoutineLaunch& launch, const codegen::RoutinePass& pass,
              int num_threads) {
  // Merged groups and rows are long; single elements are short. Threads take items dynamically, and
  // short items in large pieces.
  const bool many = pass.items >= kLeastItems;
  const auto kind = codegen::RoutinePhases(launch.routine(), {})[pass.phase];
  if (kind == codegen::PhaseKind::kBlock || !many)
    return pass.items / (int64_t{num_threads} * 8) + 1;
  return GrainFor(pass.items, kLeastItems, num_threads);
}

struct Routine {
  wire::RoutineLaunch launch;
  codegen::RoutineShape shape;
  std::vector<uint64_t> addresses;
  std::vector<LoadedModule::Loop> loops;  // one per pass
};

absl::Status Run(cpucuda::ThreadPool& pool, const Routine& routine) {
  ScratchMemory scratch;
  if (routine.shape.scratch_bytes > 0) {
    scratch = AllocateScratch(routine.shape.scratch_bytes);
    if (!scratch)
      return absl::ResourceExhaustedError(absl::StrCat(
          "no memory for what the operation keeps between passes: ", routine.shape.scratch_bytes,
          " bytes"));
  }
  codegen::RoutineFault fault;
  codegen::LaunchBlock block = codegen::PackRoutine(routine.launch, routine.addresses,
                                                    reinterpret_cast<uint64_t>(scratch.get()),
                                                    reinterpret_cast<uint64_t>(&fault));
  for (size_t i = 0; i < routine.shape.passes.size(); ++i) {
    const codegen::RoutinePass& pass = routine.shape.passes[i];
    codegen::SetPass(pass, &block);
    pool.ParallelFor(
        pass.items, Grain(routine.launch, pass, pool.num_threads()),
        [&](int64_t begin, int64_t end, int) { routine.loops[i](block.data(), begin, end); });
  }
  return codegen::ToStatus(fault);
}

// All elements over the loop's axes and the operand's own.
absl::StatusOr<Place> FindOperand(const LoweringContext& context, const wire::RoutineLaunch& launch,
                                  const wire::RoutineOperand& operand) {
  std::vector<int64_t> extents(launch.extents().begin(), launch.extents().end());
  extents.insert(extents.end(), operand.own_extents().begin(), operand.own_extents().end());
  wire::Operand all = operand.operand();
  all.mutable_strides()->MergeFrom(operand.own_strides());
  auto count = NumElements(extents);
  if (!count.ok()) return count.status();
  if (*count == 0) return context.arenas->Bytes(all.arena(), all.offset(), 0);
  return context.arenas->Elements(all, extents);
}

absl::Status CheckLimits(const wire::RoutineLaunch& launch) {
  bool good = launch.extents_size() <= codegen::kMaxRank &&
              launch.operands_size() <= codegen::kMaxOperands &&
              launch.scalars_size() <= codegen::kMaxScalars &&
              !codegen::RoutinePhases(launch.routine(), {}).empty();
  for (const wire::RoutineOperand& operand : launch.operands())
    good = good && operand.own_extents_size() <= codegen::kMaxRank &&
           operand.own_extents_size() == operand.own_strides_size() &&
           operand.operand().strides_size() == launch.extents_size();
  return good ? absl::OkStatus()
              : absl::InternalError("a routine has more axes or operands than its code can take");
}

}  // namespace

absl::StatusOr<Work> LowerRoutine(const LoweringContext& context,
                                  const wire::RoutineLaunch& launch) {
  if (absl::Status s = CheckLimits(launch); !s.ok()) return s;
  Work work;
  auto routine = std::make_shared<Routine>();
  for (const wire::RoutineOperand& operand : launch.operands()) {
    auto place = FindOperand(context, launch, operand);
    if (!place.ok()) return place.status();
    routine->addresses.push_back(place->bits());
    work.operands.push_back(*std::move(place));
  }
  routine->shape = codegen::PlanRoutine(launch, {.num_threads = context.pool->num_threads()});
  if (routine->shape.passes.empty()) return NoWork();
  auto module = FindModule(context, launch.module());
  if (!module.ok()) return module.status();
  for (const codegen::RoutinePass& pass : routine->shape.passes) {
    routine->loops.push_back((*module)->FindLoop(codegen::PhaseEntry(pass.phase)));
    if (routine->loops.back() == nullptr) return absl::InternalError("the module is no routine");
  }
  routine->launch = launch;
  work.run = [pool = context.pool, module = *module, routine] { return Run(*pool, *routine); };
  return work;
}

}  // namespace stride::cpu
