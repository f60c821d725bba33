#include "server/engine/persistence/task_codec.h"

#include <string>
#include <utility>

#include "absl/base/call_once.h"
#include "absl/strings/str_cat.h"
#include "server/base/block_pool.h"
#include "server/base/error.h"
#include "server/engine/persistence/record_convert.h"

namespace stride::engine {
namespace {

uint32_t FlagsOf(const Use& use) {
  return (use.read ? kUseRead : 0) | (use.write ? kUseWrite : 0) | (use.fresh ? kUseFresh : 0);
}

Use UseFrom(uint32_t flags) {
  return {.read = (flags & kUseRead) != 0,
          .write = (flags & kUseWrite) != 0,
          .fresh = (flags & kUseFresh) != 0};
}

// A task's record contains a part that all tasks of its plan share. The plan caches this part up to
// this size in bytes; with the code of kernels it is larger.
constexpr size_t kMostKeptOfPlan = 4096;

// Calls `use` while the record contains the plan's part. Task and code are lent, not copied.
template <typename Use>
void WithPlan(const ops::Plan& plan, recovery::TaskRecord& record, Use use) {
  record.set_num_outputs(static_cast<uint32_t>(plan.outputs.size()));
  record.mutable_zeroed_outputs()->Add(plan.zeroed_outputs.begin(), plan.zeroed_outputs.end());
  record.set_bytes(plan.bytes);
  record.set_flops(plan.flops);
  record.set_required_kind(plan.required_kind);
  record.unsafe_arena_set_allocated_task(const_cast<wire::Task*>(&plan.task));
  if (plan.code.has_value())
    record.unsafe_arena_set_allocated_code(const_cast<wire::Code*>(&*plan.code));
  use();
  record.unsafe_arena_release_task();
  if (plan.code.has_value()) record.unsafe_arena_release_code();
}

ops::Plan PlanFrom(const recovery::TaskRecord& record) {
  ops::Plan plan;
  plan.task = record.task();
  if (record.has_code()) plan.code = record.code();
  plan.outputs.resize(record.num_outputs());
  plan.zeroed_outputs.assign(record.zeroed_outputs().begin(), record.zeroed_outputs().end());
  plan.bytes = record.bytes();
  plan.flops = record.flops();
  plan.required_kind = record.required_kind();
  return plan;
}

const std::string& RecordOf(const Planned& planned) {
  absl::call_once(planned.record_made, [&planned] {
    recovery::TaskRecord record;
    WithPlan(planned.plan, record, [&] {
      if (record.ByteSizeLong() <= kMostKeptOfPlan) record.SerializeToString(&planned.record);
    });
  });
  return planned.record;
}

// Everything but the plan's part.
void WriteOwn(const Task& task, const SpaceNames& spaces, recovery::TaskRecord* record) {
  record->set_tenant(task.tenant.value);
  if (task.session != nullptr) record->set_session(task.session->id);
  record->set_label(task.label);
  if (task.kernel != nullptr) {
    task.kernel->operation->SerializeToString(record->mutable_operation());
    ToRecord(task.kernel->inputs, record->mutable_inputs());
    record->set_arguments_bound(task.kernel->bound);
  }
  for (const Use& use : task.uses) {
    recovery::UseRecord* out = record->add_uses();
    if (use.buffer == nullptr) continue;
    out->set_buffer(use.buffer->record);
    out->set_flags(FlagsOf(use));
  }
  if (task.options.pinned_device >= 0)
    record->set_pinned_device(spaces.IdOf(task.options.pinned_device));
  record->set_priority(task.options.priority);
  record->set_drop_other_replicas(task.options.drop_other_replicas);
  record->set_deadline(ToRecord(task.options.deadline));
  record->set_submit_time(ToRecord(task.timeline.submit_time));
  record->set_of_job(task.options.of_job);
  record->set_bodies(task.bodies != nullptr);
  if (task.program_launch != nullptr) record->set_program_launch(task.program_launch->record);
  if (task.state == TaskState::kDispatched) ToRecord(task, record->mutable_dispatch());
}

std::unique_ptr<KernelArguments> KernelFrom(const recovery::TaskRecord& record) {
  if (record.operation().empty()) return nullptr;
  auto operation = std::make_shared<v1::Operation>();
  operation->ParseFromString(record.operation());
  auto kernel = std::make_unique<KernelArguments>();
  kernel->operation = std::move(operation);
  kernel->inputs = InputsFrom(record.inputs());
  kernel->bound = record.arguments_bound();
  return kernel;
}

}  // namespace

void EncodeTask(
    const Task& task, const SpaceNames& spaces, recovery::TaskRecord* scratch,
    absl::FunctionRef<void(const recovery::TaskRecord& record, std::string_view begin)> write) {
  scratch->Clear();
  WriteOwn(task, spaces, scratch);
  if (const std::string& of_plan = RecordOf(*task.planned); !of_plan.empty()) {
    write(*scratch, of_plan);
  } else {
    WithPlan(task.plan(), *scratch, [&] { write(*scratch, {}); });
  }
}

absl::StatusOr<std::shared_ptr<Task>> TaskFrom(uint64_t id, const recovery::TaskRecord& record,
                                               const TaskReferences& references) {
  auto task = MakePooled<Task>();
  task->id = id;
  task->tenant = TenantId{record.tenant()};
  task->session = references.session;
  task->label = record.label();
  ops::Plan plan = PlanFrom(record);
  if (record.program_launch() != 0) {
    task->program_launch = references.program_launch;
    if (task->program_launch == nullptr) return ContentLost();
    plan.task.mutable_graph()->set_graph(task->program_launch->id);
  }
  auto planned = MakePlanned({});  // its outputs are described already, by their arrays
  planned->plan = std::move(plan);
  task->planned = std::move(planned);
  task->kernel = KernelFrom(record);
  for (const recovery::UseRecord& use : record.uses()) {
    Use made = UseFrom(use.flags());
    auto buffer = references.buffers.find(use.buffer());
    if (buffer != references.buffers.end()) {
      made.buffer = buffer->second;
    } else if (use.buffer() != 0) {
      return ContentLost();
    }
    task->uses.push_back(std::move(made));
  }
  if (!record.pinned_device().empty()) {
    task->options.pinned_device = references.spaces.FindDevice(record.pinned_device());
    if (task->options.pinned_device < 0)
      return MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DEVICE_NOT_SERVING,
                       absl::StrCat("the device is gone: devices/", record.pinned_device()));
  }
  task->options.priority = record.priority();
  task->options.drop_other_replicas = record.drop_other_replicas();
  task->options.deadline = TimeFrom(record.deadline(), SteadyTime::InfiniteFuture());
  task->timeline.submit_time = TimeFrom(record.submit_time(), SteadyTime());
  task->options.of_job = record.of_job();
  task->journal.recorded = true;
  return task;
}

void ToRecord(const Task& task, recovery::DispatchRecord* record) {
  record->set_worker(task.sent.worker_record);
  record->set_first_sequence(task.sent.first_sequence);
  record->set_last_sequence(task.sent.last_sequence);
  record->set_num_deaths(task.sent.num_deaths);
  for (const Use& use : task.uses) record->add_flags(FlagsOf(use));
  record->set_dispatch_time(ToRecord(task.timeline.dispatch_time));
  if (!task.cancel.recall.ok()) SetStatus(task.cancel.recall, record->mutable_recall());
  if (!task.order.lost_input.ok()) SetStatus(task.order.lost_input, record->mutable_lost_input());
}

void ToRecord(const Task& task, const SpaceNames& spaces, recovery::TaskResultRecord* record) {
  if (!task.result.ok()) SetStatus(task.result, record->mutable_status());
  if (task.timeline.ran_on_device >= 0)
    record->set_device(spaces.IdOf(task.timeline.ran_on_device));
  record->set_submit_time(ToRecord(task.timeline.submit_time));
  record->set_dispatch_time(ToRecord(task.timeline.dispatch_time));
  record->set_end_time(ToRecord(task.timeline.end_time));
  record->set_begin_time(ToRecord(task.timeline.begin_time));
  record->set_run_seconds(task.timeline.run_seconds);
}

std::shared_ptr<Task> FinishedTask(uint64_t id, const recovery::TaskResultRecord& record,
                                   const SpaceNames& spaces) {
  auto task = MakePooled<Task>();
  task->id = id;
  task->state = TaskState::kDone;
  task->result = StatusFrom(record.status());
  task->timeline.submit_time = TimeFrom(record.submit_time(), SteadyTime());
  task->timeline.dispatch_time = TimeFrom(record.dispatch_time(), SteadyTime());
  task->timeline.begin_time = TimeFrom(record.begin_time(), SteadyTime());
  task->timeline.end_time = TimeFrom(record.end_time(), SteadyTime());
  task->timeline.run_seconds = record.run_seconds();
  task->timeline.ran_on_device = spaces.FindDevice(record.device());
  return task;
}

void ToRecord(const ops::ProgramGraph& graph, recovery::ProgramLaunchRecord* record) {
  for (const ops::GraphStep& step : graph.steps) {
    recovery::ProgramLaunchStepRecord* out = record->add_steps();
    *out->mutable_task() = step.task;
    for (const ops::Location& place : step.places) {
      out->add_slots(place.arena);
      out->add_offsets(place.offset);
    }
    out->set_code(step.code + 1);
    if (step.kernel == nullptr) continue;
    step.kernel->SerializeToString(out->mutable_kernel());
    ToRecord(step.inputs, out->mutable_inputs());
  }
  for (const wire::Code& code : graph.codes) *record->add_codes() = code;
  record->set_num_inputs(graph.num_inputs);
  record->mutable_result_bytes()->Add(graph.result_bytes.begin(), graph.result_bytes.end());
  record->set_scratch_bytes(graph.scratch_bytes);
  record->mutable_written()->Add(graph.written.begin(), graph.written.end());
}

ops::ProgramGraph GraphFrom(const recovery::ProgramLaunchRecord& record) {
  ops::ProgramGraph graph;
  for (const recovery::ProgramLaunchStepRecord& in : record.steps()) {
    ops::GraphStep step;
    step.task = in.task();
    for (int i = 0; i < in.slots_size(); ++i) step.places.push_back({in.slots(i), in.offsets(i)});
    step.code = static_cast<int>(in.code()) - 1;
    if (!in.kernel().empty()) {
      auto kernel = std::make_shared<v1::Operation>();
      kernel->ParseFromString(in.kernel());
      step.kernel = std::move(kernel);
      step.inputs = InputsFrom(in.inputs());
    }
    graph.steps.push_back(std::move(step));
  }
  graph.codes.assign(record.codes().begin(), record.codes().end());
  graph.num_inputs = record.num_inputs();
  graph.result_bytes.assign(record.result_bytes().begin(), record.result_bytes().end());
  graph.scratch_bytes = record.scratch_bytes();
  graph.written.assign(record.written().begin(), record.written().end());
  graph.written.resize(graph.num_inputs);
  return graph;
}

}  // namespace stride::engine
