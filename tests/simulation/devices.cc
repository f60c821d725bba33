#include "tests/simulation/devices.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "server/base/error.h"
#include "server/base/steady_time.h"
#include "server/ops/bind.h"

namespace stride::simulation {
namespace {

constexpr uint64_t kStaging = 4 << 10;

absl::Status Dead() {
  return MakeError(absl::StatusCode::kUnavailable, v1::ERROR_REASON_WORKER_LOST,
                   "the device process is gone");
}

absl::Status Killed() {
  return MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST, "killed");
}

absl::Status Fault(const std::string& text) {
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_KERNEL_FAULT, text);
}

uint64_t ModuleOf(const wire::Task& task) {
  if (task.has_elementwise()) return task.elementwise().module();
  if (task.has_reduce()) return task.reduce().module();
  return 0;
}

}  // namespace

Worker::Worker(Devices* devices, uint64_t id, int device)
    : devices_(devices), id_(id), device_(device), staging_memory_(kStaging) {
  page_fd_ = *CreateMemoryFile("page", wire::kStatusPageBytes);
  page_ = *MemoryMap::Map(page_fd_.get(), wire::kStatusPageBytes, /*writable=*/true);
  staging_ =
      std::make_unique<broker::StagingPool>(staging_memory_.data(), kStaging, devices->slot_bytes_);
}

Worker::~Worker() { staging_->Close(); }

const wire::DeviceDescription& Worker::device() const { return devices_->devices_[device_]; }
World& Worker::world() const { return *devices_->world_; }

void Worker::Later(SteadyTime time, std::function<void()> work) {
  world().At(devices_, time, [self = shared_from_this(), work = std::move(work)] { work(); });
}

void Worker::Adopt(broker::WorkerCallbacks callbacks) {
  callbacks_ = std::move(callbacks);
  adopted_ = true;
  Tell([] {});
}

// A process that has just died still has an open socket.
absl::Status Worker::Deliver(std::function<void()> command) {
  if (reported_dead_ || devices_->vanished_) return Dead();
  if (dead_) return world().Chance(0.5) ? absl::OkStatus() : Dead();
  last_command_ =
      std::max(last_command_ + absl::Nanoseconds(1), world().Now() + world().Latency() / 4);
  commands_.push_back(std::move(command));
  Later(last_command_, [this] { RunCommand(); });
  return absl::OkStatus();
}

void Worker::RunCommand() {
  if (dead_ || commands_.empty()) return;
  std::function<void()> command = std::move(commands_.front());
  commands_.pop_front();
  command();
}

void Worker::GoOnAlone() {
  while (!dead_ && !commands_.empty()) RunCommand();
  while (!dead_ && running_ && !hangs_ && world().Chance(0.7)) EndCurrent();
}

void Worker::Tell(std::function<void()> news) {
  kept_back_.push_back(std::move(news));
  if (!adopted_) return;
  for (auto& kept : std::exchange(kept_back_, {})) {
    last_news_ = std::max(last_news_ + absl::Nanoseconds(1), world().Now() + world().Latency() / 4);
    Later(last_news_, std::move(kept));
  }
}

absl::StatusOr<UniqueFd> Worker::CreateArena(uint64_t arena, uint64_t size) {
  devices_->watcher_->Point("before an arena is made");
  if (reported_dead_) return Dead();
  auto fd = CreateMemoryFile("arena", size);
  auto map = MemoryMap::Map(fd->get(), size, /*writable=*/true);
  world().Sleep(world().Latency());
  if (dead_) return Dead();
  if (world().Chance(devices_->hazards_->arena_fails))
    return absl::ResourceExhaustedError("the device has no memory");
  arenas_[arena] = std::make_shared<MemoryMap>(*std::move(map));
  return fd;
}

absl::Status Worker::MapArena(uint64_t arena, uint64_t size, int fd) {
  devices_->watcher_->Point("before an arena is mapped");
  auto map = std::make_shared<MemoryMap>(*MemoryMap::Map(fd, size, /*writable=*/true));
  return Deliver([this, arena, map] { arenas_[arena] = map; });
}

absl::Status Worker::UnmapArena(uint64_t arena) {
  return Deliver([this, arena] { arenas_.erase(arena); });
}

absl::Status Worker::LoadModule(const broker::CompiledModule& module, LoadDone loaded) {
  uint64_t pending = next_pending_++;
  absl::Status sent = Deliver([this, id = module.id, pending] {
    modules_[id] = devices_->code_.at(id);
    Tell([this, id, pending] {
      auto answer = pending_.extract(pending);
      if (!answer.empty()) answer.mapped()(absl::OkStatus());
    });
  });
  if (!sent.ok()) return sent;
  pending_[pending] = [id = module.id, loaded = std::move(loaded)](absl::Status status) {
    wire::ModuleLoaded reply;
    reply.set_module(id);
    status.ok() ? loaded(reply) : loaded(status);
  };
  return absl::OkStatus();
}

absl::Status Worker::LoadGraph(uint64_t graph, const wire::Graph& steps) {
  return Deliver([this, graph, steps] { graphs_[graph] = steps; });
}

absl::Status Worker::UnloadGraph(uint64_t graph) {
  return Deliver([this, graph] { graphs_.erase(graph); });
}

absl::Status Worker::Submit(const wire::TaskPacket& packet) {
  const wire::Submit tasks = packet.Decode();
  devices_->watcher_->Point("before tasks are sent");
  for (const wire::Task& task : tasks.tasks()) {
    if (task.sequence() != ++last_submitted_)
      world().Fail("a worker was sent task ", task.sequence(), " instead of ", last_submitted_);
  }
  absl::Status sent = Deliver([this, tasks] {
    queue_.insert(queue_.end(), tasks.tasks().begin(), tasks.tasks().end());
    if (!device().host_memory()) page().started_sequence = queue_.back().sequence();
    if (!running_) StartNext();
  });
  devices_->watcher_->Point("after tasks were sent");
  return sent;
}

void Worker::CheckTenant(const std::string& label) {
  std::string tenant = devices_->watcher_->TenantOf(label);
  if (tenant.empty()) return;
  if (tenant_.empty()) tenant_ = tenant;
  if (tenant_ != tenant) world().Fail("a worker of ", tenant_, " was given a task of ", tenant);
}

std::string Worker::Work(Half half) {
  auto at = [this](uint64_t arena, uint64_t offset, uint64_t size) -> char* {
    auto found = arenas_.find(arena);
    if (found == arenas_.end() || offset + size > found->second->size()) return nullptr;
    if (!tenant_.empty()) {
      std::string& owner = devices_->arena_tenant_[arena];
      if (owner.empty()) owner = tenant_;
      if (owner != tenant_) world().Fail("memory of ", owner, " is used by ", tenant_);
    }
    return reinterpret_cast<char*>(found->second->data()) + offset;
  };
  auto compute = [&](const wire::Task& task, Half part) {
    auto code = modules_.find(ModuleOf(task));
    return Compute(task, code == modules_.end() ? nullptr : &code->second, part, at);
  };
  if (!current_.has_graph()) return compute(current_, half);
  auto graph = graphs_.find(current_.graph().graph());
  if (graph == graphs_.end()) return "its graph is not loaded";
  std::vector<ops::Location> slots;
  for (const auto& slot : current_.graph().slots()) slots.push_back({slot.arena(), slot.offset()});
  // The first half of the steps, then the others: it can be interrupted between.
  const int count = graph->second.steps_size(), middle = count / 2;
  for (int i = half == Half::kFirst ? 0 : middle; i < (half == Half::kFirst ? middle : count);
       ++i) {
    wire::Task step = graph->second.steps(i);
    ops::Bind(&step, slots);
    for (Half part : {Half::kFirst, Half::kSecond}) {
      if (std::string wrong = compute(step, part); !wrong.empty()) return wrong;
    }
  }
  return "";
}

void Worker::StartNext() {
  while (!queue_.empty()) {
    current_ = std::move(queue_.front());
    queue_.pop_front();
    uint32_t mark = static_cast<uint32_t>(current_.sequence());
    if (device().host_memory()) page().started_sequence = mark;
    if (taken_.erase(current_.sequence()) > 0) {
      wire::MarkTakenOut(page(), current_.sequence());
      page().completed_sequence = mark;
      TellResult(current_.sequence(), absl::CancelledError("taken out"), 0);
      continue;
    }
    running_ = true;
    begun_ = world().Now();
    CheckTenant(current_.label());
    world().Note("worker ", id_, " begins ", current_.sequence(), " `", current_.label(), "`");
    devices_->watcher_->Began(current_.label());
    std::string wrong = Work(Half::kFirst);
    if (!wrong.empty()) world().Fail("task `", current_.label(), "`: ", wrong);
    hangs_ = devices_->watcher_->MayHang(current_.label()) &&
             world().Chance(devices_->hazards_->task_hangs);
    if (hangs_) {
      world().Note("task `", current_.label(), "` hangs");
      return;
    }
    Later(world().Now() + world().Latency(), [this, sequence = current_.sequence()] {
      if (!dead_ && running_ && current_.sequence() == sequence) EndCurrent();
    });
    return;
  }
  if (shutting_down_) Die(absl::OkStatus(), /*fault=*/false);
}

void Worker::EndCurrent() {
  const Hazards& hazards = *devices_->hazards_;
  if (world().Chance(hazards.task_faults)) {
    Die(Fault("illegal address"), /*fault=*/true);
    return;
  }
  absl::Status status;
  if (world().Chance(hazards.task_fails)) {
    status = absl::FailedPreconditionError("it trapped");
    wire::MarkFailed(page(), current_.sequence());
    devices_->watcher_->Hit(current_.label(), /*fault=*/true);
  } else if (std::string wrong = Work(Half::kSecond); !wrong.empty()) {
    world().Fail("task `", current_.label(), "`: ", wrong);
  }
  page().completed_sequence = static_cast<uint32_t>(current_.sequence());
  running_ = false;
  TellResult(current_.sequence(), status, absl::ToDoubleSeconds(world().Now() - begun_));
  StartNext();
}

void Worker::TellResult(uint64_t sequence, const absl::Status& status, double seconds) {
  wire::TaskResult result;
  result.set_sequence(sequence);
  result.mutable_status()->set_code(static_cast<int>(status.code()));
  result.mutable_status()->set_message(std::string(status.message()));
  result.set_run_seconds(std::max(1e-6, seconds));
  Tell([this, result] { callbacks_.tasks_done({&result, 1}); });
}

absl::Status Worker::Cancel(absl::Span<const uint64_t> sequences) {
  devices_->watcher_->Point("before tasks are asked back");
  const Hazards& hazards = *devices_->hazards_;
  if (world().Chance(hazards.recall_late)) {
    last_command_ =
        std::max(last_command_, world().Now() + absl::Milliseconds(10 + 10 * world().Below(500)));
  }
  const bool refused = world().Chance(hazards.recall_refused),
             ignored = world().Chance(hazards.recall_ignored);
  return Deliver([=, this, asked = std::vector<uint64_t>(sequences.begin(), sequences.end())] {
    if (ignored) return;
    bool taken = !refused && !wire::AtOrBefore(asked.front(), page().started_sequence);
    if (taken) taken_.insert(asked.begin(), asked.end());
    Tell([this, first = asked.front(), taken] { callbacks_.cancelled(first, taken); });
  });
}

broker::Worker::Progress Worker::progress() const {
  return {page().completed_sequence.load(), page().started_sequence.load()};
}

void Worker::Copy(bool to_device, uint64_t arena, uint64_t arena_offset, uint64_t staging_offset,
                  uint64_t size, std::function<void(absl::Status)> done) {
  uint64_t pending = next_pending_++;
  pending_[pending] = std::move(done);
  auto answer = [this, pending](absl::Status status) {
    auto owed = pending_.extract(pending);
    if (!owed.empty()) owed.mapped()(std::move(status));
  };
  absl::Status sent = Deliver([=, this] {
    auto found = arenas_.find(arena);
    if (found == arenas_.end() || arena_offset + size > found->second->size()) {
      world().Fail("a copy ", to_device ? "to " : "from ", arena, "+", arena_offset,
                   " is outside the arenas of its worker");
      return;
    }
    SteadyTime& last = to_device ? last_upload_ : last_download_;
    last = std::max(last + absl::Nanoseconds(1), world().Now() + world().Latency() / 4);
    Later(last, [=, this, map = found->second] {
      if (dead_) return;
      if (world().Chance(devices_->hazards_->copy_dies)) {
        Die(Killed(), /*fault=*/false);
        return;
      }
      world().Note("worker ", id_, to_device ? " copies to " : " copies from ", arena, "+",
                   arena_offset, ", staging ", staging_offset, ", ", size);
      std::byte* there = map->data() + arena_offset;
      std::byte* here = staging_memory_.data() + staging_offset;
      std::memcpy(to_device ? there : here, to_device ? here : there, size);
      Tell([answer] { answer(absl::OkStatus()); });
    });
  });
  if (!sent.ok()) answer(sent);
}

void Worker::Kill(absl::Status cause) {
  Later(world().Now() + world().Latency() / 4,
        [this, cause = std::move(cause)] { Die(cause, /*fault=*/false); });
}

void Worker::Shutdown() {
  Deliver([this] {
    shutting_down_ = true;
    if (!running_) StartNext();
  }).IgnoreError();
}

void Worker::Die(absl::Status cause, bool fault) {
  if (std::exchange(dead_, true)) return;
  broker::WorkerDeath death{.cause = std::move(cause),
                            .completed_sequence = page().completed_sequence.load(),
                            .started_sequence = page().started_sequence.load(),
                            .undone = wire::UndoneIn(page())};
  if (running_) devices_->watcher_->Hit(current_.label(), fault);
  // The process may have reported the task, or only a fault.
  if (running_ && fault && world().Chance(0.7)) death.faulting_sequence = current_.sequence();
  world().Note("worker ", id_, " of device ", device_, " dies: ", death.cause.message(),
               running_ ? absl::StrCat(", in `", current_.label(), "`") : "", ", completed ",
               death.completed_sequence, " started ", death.started_sequence);
  running_ = false;
  queue_.clear();
  arenas_.clear();
  Tell([this, death] {
    reported_dead_ = true;
    staging_->Close();
    for (auto& [id, answer] : std::exchange(pending_, {})) answer(Dead());
    callbacks_.died(death);
  });
}

absl::StatusOr<std::shared_ptr<broker::Worker>> Devices::StartWorker(int device) {
  watcher_->Point("before a worker is started");
  if (shut_down_) return absl::UnavailableError("shut down");
  world_->Sleep(world_->Latency());
  if (shut_down_) return absl::UnavailableError("shut down");
  if (ill_[device] || world_->Chance(hazards_->start_fails))
    return absl::UnavailableError("it does not start");
  if (world_->Chance(hazards_->start_dies)) return Killed();
  auto worker = std::make_shared<Worker>(this, next_worker_++, device);
  workers_.push_back(worker);
  world_->Note("worker ", worker->id(), " of device ", device, " starts");
  return std::shared_ptr<broker::Worker>(worker);
}

std::shared_ptr<Worker> Devices::Any() {
  workers_.erase(std::remove_if(workers_.begin(), workers_.end(),
                                [](const auto& worker) { return worker->dead(); }),
                 workers_.end());
  return workers_.empty() ? nullptr : workers_[world_->Below(workers_.size())];
}

void Devices::Shutdown() {
  shut_down_ = true;
  for (const auto& worker : workers_) {
    if (!worker->dead()) worker->Die(absl::CancelledError("shut down"), /*fault=*/false);
  }
}

void Devices::GoOnAlone() {
  const std::vector<std::shared_ptr<Worker>> workers = workers_;
  for (const auto& worker : workers) worker->GoOnAlone();
}

void Devices::Vanish() {
  vanished_ = true;
  Shutdown();
}

std::shared_ptr<const broker::CompiledModule> Devices::Lookup(const TenantId&,
                                                              const std::string& target,
                                                              const wire::Code& code) {
  auto found = modules_.find(target + code.SerializeAsString());
  return found == modules_.end() ? nullptr : found->second;
}

void Devices::Compile(const TenantId&, const std::string& target, const wire::Code& code,
                      Done done) {
  world_->Sleep(world_->Latency());
  if (world_->Chance(hazards_->compile_fails)) {
    done(Killed());
    return;
  }
  auto module = std::make_shared<broker::CompiledModule>();
  module->target = target;
  module->key = code.SerializeAsString();
  module->id = modules_.size() + 1;
  auto& entry = modules_[target + module->key];
  if (entry == nullptr) {
    entry = module;
    code_[module->id] = code;
  }
  done(entry);
}

wire::DeviceDescription MakeDevice(int index, bool host, int64_t memory_bytes) {
  wire::DeviceDescription device;
  device.set_kind(host ? "cpu" : "cuda");
  device.set_id(absl::StrCat(device.kind(), ":", index));
  device.set_index(index);
  device.set_target(absl::StrCat(device.kind(), ":test"));
  device.set_memory_bytes(memory_bytes);
  device.set_num_compute_units(1);
  device.set_host_memory(host);
  device.set_arena_granularity_bytes(4096);
  device.set_memory_bytes_per_second(1e10);
  device.set_transfer_bytes_per_second(1e10);
  return device;
}

}  // namespace stride::simulation
