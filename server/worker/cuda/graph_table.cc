#include "server/worker/cuda/graph_table.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/worker/cuda/driver/cuda_status.h"

namespace stride::cuda {
namespace {

// Limit per graph. A client that fetches each result before the next call uses one or two. A client
// ahead of the device uses as many as it has results in flight, and some more, since their
// addresses change. Creation takes 7 us per step, an update 2, and an unchanged launch a few in all
// (H200).
constexpr size_t kMaxExecutables = 64;
// Limit for all executables: a step takes 3.4 KiB of the device's memory (H200).
constexpr int64_t kMaxSteps = 32 << 10;
// A segment of fewer steps does not pay as a graph launch.
constexpr int kLeastSteps = 2;

// A texture's copy of an array belongs to the launch: an executable would keep the handle after its
// destruction.
bool ReadsTexture(const wire::KernelLaunch& launch) {
  return std::any_of(launch.arguments().begin(), launch.arguments().end(),
                     [](const wire::KernelArgument& argument) { return argument.has_texture(); });
}

bool IsCapturable(const wire::Task& step, const GraphTable::KernelTraits& traits) {
  switch (step.kind_case()) {
    case wire::Task::kElementwise:
    case wire::Task::kReduce:
    case wire::Task::kMatmul:
    case wire::Task::kRoutine:
    case wire::Task::kZeroFill:
    case wire::Task::kCopyBytes:
      return true;
    case wire::Task::kKernel:
      return !step.kernel().cooperative() && !traits.sets_variables && !ReadsTexture(step.kernel());
    default:
      return false;
  }
}

uint64_t ModuleOf(const wire::Task& step) {
  switch (step.kind_case()) {
    case wire::Task::kElementwise:
      return step.elementwise().module();
    case wire::Task::kReduce:
      return step.reduce().module();
    case wire::Task::kMatmul:
      return step.matmul().module();
    case wire::Task::kKernel:
      return step.kernel().module();
    case wire::Task::kRoutine:
      return step.routine().module();
    default:
      return 0;
  }
}

bool MayFault(const wire::Task& step, const GraphTable::KernelTraits& traits) {
  return step.has_routine() || step.has_linalg() || traits.may_fault;
}

std::string PlaceOf(const wire::Task& step, int index) {
  return absl::StrCat("step ", index, " of the program (", step.label(), "): ");
}

bool Same(const std::vector<ops::Location>& a, const std::vector<ops::Location>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.arena == y.arena && x.offset == y.offset;
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<GraphTable>> GraphTable::Create(const Driver& driver,
                                                               CUstream stream, Scratch& scratch) {
  // A stream of its own: a stream under capture must not be queried, which the poller does.
  absl::StatusOr<Stream> capture = Stream::Create(driver);
  if (!capture.ok()) return capture.status();
  return std::unique_ptr<GraphTable>(new GraphTable(driver, stream, scratch, *std::move(capture)));
}

GraphTable::~GraphTable() {
  while (!graphs_.empty()) Unload(graphs_.begin()->first).IgnoreError();
}

absl::Status GraphTable::Load(
    uint64_t id, wire::Graph steps, std::optional<ops::Location> scratch,
    absl::FunctionRef<KernelTraits(const wire::KernelLaunch&)> traits_of) {
  if (graphs_.count(id) > 0)
    return absl::InvalidArgumentError(absl::StrCat("graph ", id, " is loaded already"));
  Graph& graph = graphs_[id];
  graph.steps = std::move(steps);
  graph.own_scratch = scratch;
  std::vector<std::string> places;
  for (int i = 0; i < graph.steps.steps_size(); ++i) {
    const wire::Task& step = graph.steps.steps(i);
    const KernelTraits traits = step.has_kernel() ? traits_of(step.kernel()) : KernelTraits();
    const bool capturable = IsCapturable(step, traits);
    if (graph.segments.empty() || graph.segments.back().captured != capturable)
      graph.segments.push_back({i, i, graph.num_faults, graph.num_faults, capturable});
    const bool may_fault = MayFault(step, traits);
    graph.fault.push_back(may_fault ? graph.num_faults++ : -1);
    if (may_fault) places.push_back(PlaceOf(step, i));
    graph.segments.back().end = i + 1;
    graph.segments.back().end_fault = graph.num_faults;
    for (uint64_t module : {ModuleOf(step), step.reduce().by_blocks().loops()}) {
      if (module != 0) graph.modules.push_back(module);
    }
  }
  for (Segment& segment : graph.segments) {
    segment.captured = segment.captured && segment.end - segment.begin >= kLeastSteps;
    graph.has_captured = graph.has_captured || segment.captured;
  }
  std::sort(graph.modules.begin(), graph.modules.end());
  graph.modules.erase(std::unique(graph.modules.begin(), graph.modules.end()), graph.modules.end());
  graph.fault_places = std::make_shared<const std::vector<std::string>>(std::move(places));
  return absl::OkStatus();
}

absl::Status GraphTable::Unload(uint64_t id) {
  auto found = graphs_.find(id);
  if (found == graphs_.end())
    return absl::InvalidArgumentError(absl::StrCat("graph ", id, " is not loaded"));
  ForgetExecutables(found->second);
  if (found->second.device_faults != 0)
    driver_.cuMemFreeAsync(found->second.device_faults, stream_);
  graphs_.erase(found);
  return absl::OkStatus();
}

void GraphTable::ForgetExecutables() {
  for (auto& [id, graph] : graphs_) ForgetExecutables(graph);
}

void GraphTable::ForgetExecutables(Graph& graph) {
  num_steps_ -= static_cast<int64_t>(graph.executables.size()) * graph.steps.steps_size();
  graph.executables.clear();
}

absl::StatusOr<GraphTable::Needs> GraphTable::NeedsOf(uint64_t id) const {
  auto found = graphs_.find(id);
  if (found == graphs_.end())
    return absl::InternalError(absl::StrCat("graph ", id, " is not loaded"));
  return Needs{found->second.modules, found->second.num_faults, found->second.fault_places};
}

absl::Status GraphTable::Replay(const wire::GraphLaunch& launch, codegen::RoutineFault* faults,
                                LowerStep lower) {
  auto found = graphs_.find(launch.graph());
  if (found == graphs_.end())
    return absl::InternalError(absl::StrCat("graph ", launch.graph(), " is not loaded"));
  Graph& graph = found->second;
  Slots slots;
  slots.reserve(launch.slots_size());
  for (const wire::Location& slot : launch.slots()) slots.push_back({slot.arena(), slot.offset()});
  if (graph.own_scratch.has_value()) {
    if (graph.steps.scratch_slot() >= slots.size())
      return absl::InvalidArgumentError("a graph's launch has too few slots");
    slots[graph.steps.scratch_slot()] = *graph.own_scratch;
  }
  if (!graph.has_captured || !std::exchange(graph.begun, true))
    return LaunchPlainly(graph, slots, faults, lower);
  absl::StatusOr<Executable*> executable = FindExecutable(graph, slots, lower);
  if (executable.ok()) return LaunchExecutable(graph, **executable, faults, lower);
  StayPlain(graph, executable.status());
  return LaunchPlainly(graph, slots, faults, lower);
}

absl::Status GraphTable::LaunchSteps(const Graph& graph, int begin, int end, const Slots& slots,
                                     codegen::RoutineFault* faults, LowerStep lower) {
  for (int i = begin; i < end; ++i) {
    wire::Task step = graph.steps.steps(i);
    ops::Bind(&step, slots);
    codegen::RoutineFault* fault = graph.fault[i] < 0 ? nullptr : &faults[graph.fault[i]];
    absl::Status status = lower(step, stream_, fault, /*device_fault=*/0);
    if (status.ok()) continue;
    return absl::Status(status.code(), absl::StrCat(PlaceOf(step, i), status.message()));
  }
  return absl::OkStatus();
}

absl::Status GraphTable::LaunchPlainly(Graph& graph, const Slots& slots,
                                       codegen::RoutineFault* faults, LowerStep lower) {
  scratch_.TakePeak();
  absl::Status status = LaunchSteps(graph, 0, graph.steps.steps_size(), slots, faults, lower);
  graph.scratch_bytes = std::max(graph.scratch_bytes, scratch_.TakePeak());
  if (!status.ok()) graph.begun = false;  // some steps are not prepared
  return status;
}

absl::Status GraphTable::LaunchExecutable(const Graph& graph, const Executable& executable,
                                          codegen::RoutineFault* faults, LowerStep lower) {
  size_t next = 0;
  for (const Segment& segment : graph.segments) {
    if (!segment.captured) {
      absl::Status status =
          LaunchSteps(graph, segment.begin, segment.end, executable.slots, faults, lower);
      if (!status.ok()) return status;
      continue;
    }
    const uint64_t num_faults = segment.end_fault - segment.first_fault;
    const uint64_t fault_bytes = num_faults * sizeof(codegen::RoutineFault);
    const CUdeviceptr device_faults =
        graph.device_faults + segment.first_fault * sizeof(codegen::RoutineFault);
    if (num_faults > 0) {
      STRIDE_CUDA_RETURN(driver_.cuMemsetD8Async(device_faults, 0, fault_bytes, stream_),
                         "clearing faults");
    }
    STRIDE_CUDA_RETURN(driver_.cuGraphLaunch(executable.segments[next++].get(), stream_),
                       "launching a graph");
    if (num_faults > 0) {
      STRIDE_CUDA_RETURN(driver_.cuMemcpyDtoHAsync(&faults[segment.first_fault], device_faults,
                                                   fault_bytes, stream_),
                         "fetching faults");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<GraphTable::Executable*> GraphTable::FindExecutable(Graph& graph, const Slots& slots,
                                                                   LowerStep lower) {
  // The scratch memory must neither move nor grow during a capture.
  absl::StatusOr<CUdeviceptr> scratch = CUdeviceptr{0};
  if (graph.scratch_bytes > 0) scratch = scratch_.Reserve(graph.scratch_bytes);
  if (!scratch.ok()) return scratch.status();
  if (graph.scratch_bytes > Scratch::kKeptBytes)
    return absl::ResourceExhaustedError("its steps need more scratch memory than is kept");
  std::list<Executable>& all = graph.executables;
  auto known = std::find_if(all.begin(), all.end(), [&](const Executable& executable) {
    return Same(executable.slots, slots);
  });
  if (known != all.end() && known->scratch == *scratch) {
    all.splice(all.begin(), all, known);
    return &all.front();
  }
  const bool full = num_steps_ + graph.steps.steps_size() > kMaxSteps;
  if (known == all.end() && !all.empty() && (full || all.size() >= kMaxExecutables))
    known = std::prev(all.end());
  if (known == all.end()) {
    if (full) ForgetExecutables();
    all.emplace_front();
    num_steps_ += graph.steps.steps_size();
  } else {
    all.splice(all.begin(), all, known);
  }
  Executable& executable = all.front();
  executable.slots = slots;
  executable.scratch = *scratch;
  absl::Status filled = Fill(graph, &executable, lower);
  if (filled.ok()) return &executable;
  num_steps_ -= graph.steps.steps_size();
  all.pop_front();
  return filled;
}

// Creates or updates the executable's segments.
absl::Status GraphTable::Fill(Graph& graph, Executable* executable, LowerStep lower) {
  if (graph.num_faults > 0 && graph.device_faults == 0) {
    STRIDE_CUDA_RETURN(
        driver_.cuMemAllocAsync(&graph.device_faults,
                                graph.num_faults * sizeof(codegen::RoutineFault), stream_),
        "reserving memory for faults");
  }
  size_t next = 0;
  for (const Segment& segment : graph.segments) {
    if (!segment.captured) continue;
    absl::StatusOr<DriverGraph> captured = Capture(graph, segment, executable->slots, lower);
    if (!captured.ok()) return captured.status();
    if (next == executable->segments.size()) executable->segments.emplace_back();
    GraphExecutable& known = executable->segments[next++];
    if (known.Update(*captured)) continue;
    // destroyed before the next is created: each takes memory of the device
    known = GraphExecutable();
    absl::StatusOr<GraphExecutable> made = GraphExecutable::Create(driver_, *captured);
    if (!made.ok()) return made.status();
    known = *std::move(made);
  }
  return absl::OkStatus();
}

absl::StatusOr<DriverGraph> GraphTable::Capture(const Graph& graph, const Segment& segment,
                                                const Slots& slots, LowerStep lower) {
  // Relaxed, since libraries may load code during the capture.
  STRIDE_CUDA_RETURN(driver_.cuStreamBeginCapture(capture_.get(), CU_STREAM_CAPTURE_MODE_RELAXED),
                     "beginning to capture");
  scratch_.Freeze(true);
  absl::Status status;
  for (int i = segment.begin; status.ok() && i < segment.end; ++i) {
    wire::Task step = graph.steps.steps(i);
    ops::Bind(&step, slots);
    const CUdeviceptr fault =
        graph.fault[i] < 0 ? 0
                           : graph.device_faults + graph.fault[i] * sizeof(codegen::RoutineFault);
    status = lower(step, capture_.get(), nullptr, fault);
  }
  scratch_.Freeze(false);
  absl::StatusOr<DriverGraph> captured = DriverGraph::EndCapture(driver_, capture_.get());
  if (!status.ok()) return status;
  return captured;
}

void GraphTable::StayPlain(Graph& graph, const absl::Status& why) {
  std::fprintf(stderr, "stride worker: a program is launched step by step: %s\n",
               why.ToString().c_str());
  graph.has_captured = false;
  ForgetExecutables(graph);
}

}  // namespace stride::cuda
