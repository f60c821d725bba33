// Programs that run as one task: their code, their graph in workers, their record in the journal.
#include "server/engine/core/program_launch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/base/error.h"
#include "server/base/system_error.h"
#include "server/ops/bind.h"
#include "server/ops/reduce_by_blocks.h"

namespace stride::engine {
namespace {

constexpr size_t kMaxNames = 50;  // kernels named in one error

// The error of a step, with the step's index and label in its text.
absl::Status OfStep(const absl::Status& status, const wire::Task& step, size_t index) {
  absl::string_view text = status.message(), label = step.label();
  return WithText(status, absl::StrCat("step ", index, " of the program (", label, "): ", text));
}

}  // namespace

void DeadRecords::Add(uint64_t record) {
  absl::MutexLock lock(&mutex_);
  records_.push_back(record);
  any_.store(true, std::memory_order_release);
}

std::vector<uint64_t> DeadRecords::Take() {
  absl::MutexLock lock(&mutex_);
  any_.store(false, std::memory_order_relaxed);
  return std::exchange(records_, {});
}

ProgramLaunch::~ProgramLaunch() {
  if (dead != nullptr) dead->Add(record);
}

void SetByBlocks(wire::Task* task, const broker::CompiledModule* loops, const wire::Code& code) {
  // A bound task is reused, so its programs are copied once.
  if (task->has_elementwise()) {
    wire::ElementwiseLaunch& launch = *task->mutable_elementwise();
    if (loops == nullptr) {
      launch.clear_by_blocks();
    } else if (!launch.has_by_blocks()) {
      *launch.mutable_by_blocks() = code.elementwise().program();
    }
  } else if (task->has_reduce()) {
    wire::ReduceLaunch& launch = *task->mutable_reduce();
    if (loops == nullptr) {
      launch.clear_by_blocks();
    } else if (launch.by_blocks().loops() != loops->id) {
      *launch.mutable_by_blocks() = ops::ReduceByBlocks(code.reduce(), loops->id);
    }
  }
}

ops::Plan PlanOf(const ProgramLaunch& program_launch) {
  ops::Plan plan;
  wire::GraphLaunch* launch = plan.task.mutable_graph();
  launch->set_graph(program_launch.id);
  for (size_t slot = 0; slot < program_launch.graph.num_slots(); ++slot)
    launch->add_slots()->set_arena(slot);
  for (int64_t bytes : program_launch.graph.result_bytes)
    plan.outputs.push_back(Contiguous(DType::kUInt8, {bytes}));
  if (program_launch.graph.scratch_bytes > 0)
    plan.outputs.push_back(Contiguous(DType::kUInt8, {program_launch.graph.scratch_bytes}));
  plan.bytes = program_launch.graph.bytes;
  plan.flops = program_launch.graph.flops;
  plan.required_kind = program_launch.graph.required_kind;
  for (const wire::Code& code : program_launch.graph.codes) {
    if (const std::string kind = ops::RequiredKind(code); !kind.empty()) plan.required_kind = kind;
  }
  return plan;
}

absl::StatusOr<const wire::KernelDescription*> FindKernel(const wire::ModuleDescription& module,
                                                          const std::string& entry) {
  std::vector<std::string> known;
  for (const auto& candidate : module.kernels()) {
    if (candidate.entry() == entry) return &candidate;
    if (known.size() < kMaxNames) known.push_back(candidate.entry());
  }
  return InvalidField(v1::ERROR_REASON_UNKNOWN_ENTRY, "kernel_launch.entry",
                      absl::StrCat("no __global__ function is called `", entry,
                                   "`. The module has: ", absl::StrJoin(known, ", ")),
                      {{"entry", entry}});
}

absl::StatusOr<CompiledProgram> MakeCompiledProgram(
    const ops::ProgramGraph& graph,
    std::vector<std::shared_ptr<const broker::CompiledModule>> modules, const LaunchTier& tier) {
  CompiledProgram ready;
  ready.written = graph.written;
  for (size_t i = 0; i < graph.steps.size(); ++i) {
    const ops::GraphStep& step = graph.steps[i];
    wire::Task task = step.task;
    const broker::CompiledModule* module = step.code < 0 ? nullptr : modules[step.code].get();
    if (step.kernel != nullptr && module != nullptr) {
      const v1::KernelLaunch& launch = step.kernel->kernel_launch();
      auto kernel = FindKernel(module->description, launch.entry());
      if (!kernel.ok()) return OfStep(kernel.status(), task, i);
      absl::Status bound = ops::BindKernelArguments(launch, step.inputs, **kernel, &task);
      if (bound.ok())
        bound = ops::BindKernelGlobals(launch, step.inputs, module->description, &task);
      if (!bound.ok()) return OfStep(bound, task, i);
      for (int index : ops::WrittenOperands(launch, **kernel)) {
        const uint64_t slot = step.places[index].arena;
        if (slot < graph.num_inputs) ready.written[slot] = true;
      }
    }
    ops::Bind(&task, step.places);
    if (module != nullptr) ops::SetModule(&task, module->id);
    if (tier.RunsByBlocks(step.code)) {
      const size_t code = static_cast<size_t>(step.code);
      SetByBlocks(&task, tier.loops.get(), graph.codes[code]);
      ready.elements_by_blocks += kLaunchElements + tier.codes[code]->elements;
    }
    *ready.steps.add_steps() = std::move(task);
  }
  if (graph.scratch_bytes > 0) {
    ready.steps.set_scratch_slot(graph.num_slots() - 1);
    ready.steps.set_scratch_bytes(static_cast<uint64_t>(graph.scratch_bytes));
  }
  ready.modules = std::move(modules);
  if (ready.elements_by_blocks > 0) ready.modules.push_back(tier.loops);
  return ready;
}

}  // namespace stride::engine
