#include "server/broker/worker_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/base/system_error.h"
#include "server/broker/verdict.h"
#include "server/wire/status.h"

namespace stride::broker {
namespace {

constexpr uint32_t kProtocolVersion = 2;
constexpr absl::Duration kArenaTimeout = absl::Seconds(30);
constexpr absl::Duration kShutdownGrace = absl::Seconds(5);
// Bytes of tasks per packet: wire::kMaxPacketBytes less room for framing.
constexpr size_t kMaxTasksBytes = 100 << 10;

uint64_t NextId() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

absl::Status CheckTasks(const wire::TaskPacket& packet, uint64_t last) {
  for (const wire::TaskPacket::Entry& task : packet.tasks()) {
    if (task.sequence != ++last) {
      return absl::InvalidArgumentError("the tasks' sequences do not grow by one");
    }
    if (task.end - task.begin > kMaxTasksBytes) {
      return MakeError(absl::StatusCode::kInvalidArgument, v1::ERROR_REASON_SIZE_LIMIT,
                       absl::StrCat("the launch's description is too large; its limit in bytes is ",
                                    kMaxTasksBytes));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WorkerProcess::Parts> WorkerProcess::MakeParts(const WorkerOptions& options,
                                                              ChildParts* child) {
  Parts parts;
  auto sockets = wire::CreateSocketPair();
  if (!sockets.ok()) return sockets.status();
  parts.socket = std::move(sockets->first);
  child->socket = std::move(sockets->second);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError(errno, "making a pipe");
  parts.errors = UniqueFd(ends[0]);
  child->standard_error = UniqueFd(ends[1]);
  // Only the daemon's end is non-blocking: a worker waits for a slow daemon, never the reverse.
  if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return absl::ErrnoToStatus(errno, "a pipe");
  auto staging = CreateMemoryFile("stride-staging", options.staging_bytes);
  if (!staging.ok()) return staging.status();
  auto page = CreateMemoryFile("stride-status", wire::kStatusPageBytes);
  if (!page.ok()) return page.status();
  auto staging_map = MemoryMap::Map(staging->get(), options.staging_bytes, /*writable=*/true);
  if (!staging_map.ok()) return staging_map.status();
  auto page_map = MemoryMap::Map(page->get(), wire::kStatusPageBytes, /*writable=*/false);
  if (!page_map.ok()) return page_map.status();
  auto wakeup = Wakeup::Create();
  if (!wakeup.ok()) return wakeup.status();
  parts.wakeup = *std::move(wakeup);
  parts.staging_file = *std::move(staging);
  parts.page_file = *std::move(page);
  parts.staging = *std::move(staging_map);
  parts.page = *std::move(page_map);
  return parts;
}

absl::StatusOr<std::shared_ptr<Worker>> WorkerProcess::Start(WorkerOptions options,
                                                             Spawner* spawner, WorkerList* list) {
  ChildParts child_parts;
  absl::StatusOr<Parts> parts = MakeParts(options, &child_parts);
  if (!parts.ok()) return parts.status();
  SpawnRequest request;
  request.executable = options.executable;
  request.arguments = {"--serve", absl::StrCat("--fd=", kChildSocket)};
  for (std::string& argument : SandboxArguments(options.sandbox)) {
    request.arguments.push_back(std::move(argument));
  }
  request.socket = child_parts.socket.get();
  if (!KeepsStandardError(options.sandbox)) {
    request.standard_error = child_parts.standard_error.get();
  }
  absl::StatusOr<ChildProcess> child = spawner->Spawn(std::move(request));
  if (!child.ok()) return child.status();
  child_parts = {};  // the child's ends must close with the process

  UniqueFd staging_file = std::move(parts->staging_file);
  std::shared_ptr<WorkerProcess> self(
      new WorkerProcess(std::move(options), *std::move(parts), *std::move(child), list));
  list->Add(self);
  absl::StatusOr<std::thread> reader = StartThread([self] { self->Run(); });
  if (!reader.ok()) {
    list->Remove(self->id());
    return reader.status();  // destroying the object ends the process
  }
  reader->detach();
  std::shared_ptr<Worker> handle(self.get(), [self](Worker*) { self->Release(); });
  if (absl::Status s = self->SendStart(staging_file.get(), self->page_file_.get()); !s.ok())
    return s;
  if (absl::Status s = self->AwaitReady(); !s.ok()) return s;
  return handle;
}

WorkerProcess::WorkerProcess(WorkerOptions options, Parts parts, ChildProcess child,
                             WorkerList* list)
    : options_(std::move(options)),
      id_(NextId()),
      pid_(child.pid()),
      child_(std::move(child)),
      channel_(std::move(parts.socket)),
      staging_map_(std::move(parts.staging)),
      page_map_(std::move(parts.page)),
      page_file_(std::move(parts.page_file)),
      staging_(staging_map_.data(), staging_map_.size(), options_.slot_bytes),
      errors_(std::move(parts.errors), options_.log),
      list_(list),
      wakeup_(std::move(parts.wakeup)) {}

absl::Status WorkerProcess::SendStart(int staging_file, int page_file) {
  wire::Command command;
  auto* start = command.mutable_start();
  start->set_protocol_version(kProtocolVersion);
  start->set_device_index(options_.device.index());
  start->set_staging_bytes(options_.staging_bytes);
  start->set_num_threads(options_.num_threads);
  start->set_device_id(options_.device.id());
  // The socket has room for it. If the process has died already, AwaitReady reports why.
  absl::Status sent = channel_.Send(command, {staging_file, page_file});
  return absl::IsUnavailable(sent) ? absl::OkStatus() : sent;
}

absl::Status WorkerProcess::AwaitReady() {
  absl::MutexLock lock(&mutex_);
  auto settled = [this]()
                     ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return state_ != State::kStarting; };
  if (!Await(mutex_, absl::Condition(&settled), Now() + options_.start_timeout)) {
    Condemn(JudgeStuck("did not get ready", options_.start_timeout));
    mutex_.Await(absl::Condition(&settled));
  }
  return state_ == State::kReady ? absl::OkStatus() : *cause_;
}

bool WorkerProcess::alive() const {
  absl::MutexLock lock(&mutex_);
  return state_ == State::kReady && !cause_.has_value();
}

void WorkerProcess::Adopt(WorkerCallbacks callbacks) {
  {
    absl::MutexLock lock(&mutex_);
    callbacks_ = std::move(callbacks);
    adopted_ = true;
    page_file_.Reset();  // both have it mapped, and an FdStore has its descriptor
  }
  wakeup_.Signal();
}

absl::Status WorkerProcess::DeadStatus() const {
  return MakeError(absl::StatusCode::kUnavailable, v1::ERROR_REASON_WORKER_LOST,
                   "the worker process has ended");
}

absl::Status WorkerProcess::Send(const wire::Command& command, absl::Span<const int> descriptors) {
  if (!alive()) return DeadStatus();
  const std::string bytes = command.SerializeAsString();
  if (absl::Status added = outbox_.Add({bytes}, descriptors); !added.ok()) return added;
  return SendOutbox();
}

absl::Status WorkerProcess::SendOutbox() {
  const absl::Status sent = outbox_.Send();
  if (sent.ok()) {
    // The reader thread sends the rest once there is room.
    if (outbox_.full()) wakeup_.Signal();
    return sent;
  }
  // For a closed socket the reader thread reports a better cause.
  if (!absl::IsUnavailable(sent)) {
    absl::MutexLock lock(&mutex_);
    Condemn(JudgeUnreachable(sent));
  }
  return DeadStatus();
}

absl::StatusOr<UniqueFd> WorkerProcess::CreateArena(uint64_t arena, uint64_t size) {
  {
    absl::MutexLock lock(&mutex_);
    if (state_ != State::kReady) return DeadStatus();
    if (!ledger_.AddArena(arena)) {
      return absl::InvalidArgumentError("the arena is being made already");
    }
  }
  wire::Command command;
  command.mutable_create_arena()->set_arena(arena);
  command.mutable_create_arena()->set_size(size);
  absl::Status sent = Send(command);
  absl::MutexLock lock(&mutex_);
  auto answered = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ledger_.ArenaAnswered(arena);
  };
  bool in_time = !sent.ok() || Await(mutex_, absl::Condition(&answered), Now() + kArenaTimeout);
  absl::StatusOr<UniqueFd> result = ledger_.TakeArena(arena);
  if (!sent.ok()) return sent;
  if (!in_time) {
    Condemn(JudgeStuck("did not make device memory", kArenaTimeout));
    return DeadStatus();
  }
  return result;
}

absl::Status WorkerProcess::MapArena(uint64_t arena, uint64_t size, int fd) {
  wire::Command command;
  command.mutable_map_arena()->set_arena(arena);
  command.mutable_map_arena()->set_size(size);
  return Send(command, {fd});
}

absl::Status WorkerProcess::MapHostArena(uint64_t arena, uint64_t size, int fd) {
  wire::Command command;
  command.mutable_map_host_arena()->set_arena(arena);
  command.mutable_map_host_arena()->set_size(size);
  return Send(command, {fd});
}

absl::Status WorkerProcess::UnmapArena(uint64_t arena) {
  wire::Command command;
  command.mutable_unmap_arena()->set_arena(arena);
  return Send(command);
}

absl::Status WorkerProcess::LoadModule(const CompiledModule& module, LoadDone loaded) {
  {
    absl::MutexLock lock(&mutex_);
    if (state_ != State::kReady) return DeadStatus();
    if (!ledger_.AddLoad(module.id, std::move(loaded))) {
      return absl::InvalidArgumentError("the module is being loaded already");
    }
  }
  wire::Command command;
  command.mutable_load_module()->set_module(module.id);
  command.mutable_load_module()->set_size(module.size);
  *command.mutable_load_module()->mutable_description() = module.description;
  // Each worker gets its own open file: a shared one would share the read offset between tenants'
  // workers.
  absl::StatusOr<UniqueFd> object = ReopenForReading(module.object.get());
  absl::Status sent = object.ok() ? Send(command, {object->get()}) : absl::Status(object.status());
  if (sent.ok()) return sent;
  absl::MutexLock lock(&mutex_);
  // If the reader thread took the entry, it has called `loaded`, so this call must not fail as
  // well.
  return ledger_.TakeLoad(module.id).ok() ? sent : absl::OkStatus();
}

absl::Status WorkerProcess::UnloadModule(uint64_t module) {
  wire::Command command;
  command.mutable_unload_module()->set_module(module);
  return Send(command);
}

absl::Status WorkerProcess::LoadGraph(uint64_t graph, const wire::Graph& steps) {
  wire::Command command;
  wire::LoadGraph* load = command.mutable_load_graph();
  load->set_graph(graph);
  if (steps.ByteSizeLong() <= kMaxTasksBytes) {
    *load->mutable_steps() = steps;
    return Send(command);
  }
  load->set_in_descriptor(true);
  absl::StatusOr<UniqueFd> file = CreateSealedCopy("stride-graph", steps.SerializeAsString());
  return file.ok() ? Send(command, {file->get()}) : file.status();
}

absl::Status WorkerProcess::UnloadGraph(uint64_t graph) {
  wire::Command command;
  command.mutable_unload_graph()->set_graph(graph);
  return Send(command);
}

absl::Status WorkerProcess::Submit(const wire::TaskPacket& tasks) {
  const absl::Status submitted = SubmitLater(tasks);
  return submitted.ok() ? SendOutbox() : submitted;
}

void WorkerProcess::Flush() { SendOutbox().IgnoreError(); }

absl::Status WorkerProcess::SubmitLater(const wire::TaskPacket& tasks) {
  if (tasks.empty()) return absl::OkStatus();
  absl::MutexLock order(&submit_mutex_);
  {
    absl::MutexLock lock(&mutex_);
    if (state_ != State::kReady) return DeadStatus();
    if (absl::Status s = CheckTasks(tasks, ledger_.last_submitted()); !s.ok()) return s;
    ledger_.AddTasks(ledger_.last_submitted() + tasks.tasks().size());
  }
  size_t begin = 0;
  for (size_t i = 0; i < tasks.tasks().size(); ++i) {
    const size_t end = tasks.tasks()[i].end;
    const bool more = i + 1 < tasks.tasks().size();
    if (more && tasks.tasks()[i + 1].end - begin <= kMaxTasksBytes) continue;
    const std::string header = wire::TaskPacket::CommandHeader(end - begin);
    absl::Status added = outbox_.Add({header, tasks.bytes().substr(begin, end - begin)});
    if (!added.ok()) return added;
    begin = end;
  }
  return absl::OkStatus();
}

absl::Status WorkerProcess::Cancel(absl::Span<const uint64_t> sequences) {
  wire::Command command;
  command.mutable_cancel()->mutable_sequences()->Add(sequences.begin(), sequences.end());
  {
    absl::MutexLock lock(&mutex_);
    if (state_ != State::kReady) return DeadStatus();
    if (sequences.empty() || sequences.back() > ledger_.last_submitted() ||
        !std::is_sorted(sequences.begin(), sequences.end())) {
      return absl::InvalidArgumentError("the tasks to cancel were not submitted in this order");
    }
    if (!ledger_.AddCancel(sequences.front())) {
      return absl::InvalidArgumentError("the task is being cancelled already");
    }
  }
  return Send(command);
}

Worker::Progress WorkerProcess::progress() const {
  const auto* page = reinterpret_cast<const wire::StatusPage*>(page_map_.data());
  return {page->completed_sequence.load(), page->started_sequence.load()};
}

void WorkerProcess::Copy(bool to_device, uint64_t arena, uint64_t arena_offset,
                         uint64_t staging_offset, uint64_t size,
                         std::function<void(absl::Status)> done) {
  wire::Command command;
  auto* copy = command.mutable_copy();
  copy->set_to_device(to_device);
  copy->set_arena(arena);
  copy->set_arena_offset(arena_offset);
  copy->set_staging_offset(staging_offset);
  copy->set_size(size);
  SendCopy(std::move(command), std::move(done));
}

void WorkerProcess::CopyRegion(bool to_device, uint64_t arena, uint64_t arena_offset,
                               uint64_t region, uint64_t region_offset, uint64_t size,
                               std::function<void(absl::Status)> done) {
  wire::Command command;
  auto* copy = command.mutable_copy();
  copy->set_to_device(to_device);
  copy->set_arena(arena);
  copy->set_arena_offset(arena_offset);
  copy->set_region(region);
  copy->set_staging_offset(region_offset);
  copy->set_size(size);
  SendCopy(std::move(command), std::move(done));
}

absl::Status WorkerProcess::MapPeerArena(uint64_t arena, uint64_t size, int fd) {
  wire::Command command;
  command.mutable_map_arena()->set_arena(arena);
  command.mutable_map_arena()->set_size(size);
  command.mutable_map_arena()->set_peer(true);
  return Send(command, {fd});
}

void WorkerProcess::CopyFromPeer(uint64_t arena, uint64_t offset, uint64_t source_arena,
                                 uint64_t source_offset, uint64_t size,
                                 std::function<void(absl::Status)> done) {
  wire::Command command;
  auto* copy = command.mutable_copy();
  copy->set_to_device(true);
  copy->set_arena(arena);
  copy->set_arena_offset(offset);
  copy->set_source_arena(source_arena);
  copy->set_source_offset(source_offset);
  copy->set_size(size);
  SendCopy(std::move(command), std::move(done));
}

void WorkerProcess::SendCopy(wire::Command command, std::function<void(absl::Status)> done) {
  auto* copy = command.mutable_copy();
  bool serving;
  {
    absl::MutexLock lock(&mutex_);
    if (state_ == State::kReady) {
      copy->set_id(ledger_.AddCopy(std::move(done)));
    } else if (serving_) {
      deferred_.push_back([done = std::move(done), status = DeadStatus()] { done(status); });
    }
    serving = serving_;
  }
  if (copy->id() != 0) {
    // On failure the worker dies, and its reader thread fails every pending copy.
    (void)Send(command);
  } else if (!serving) {
    done(DeadStatus());
  }
}

absl::Status WorkerProcess::MapRegion(uint64_t region, uint64_t size, int fd) {
  wire::Command command;
  command.mutable_map_region()->set_region(region);
  command.mutable_map_region()->set_size(size);
  return Send(command, {fd});
}

absl::Status WorkerProcess::UnmapRegion(uint64_t region) {
  wire::Command command;
  command.mutable_unmap_region()->set_region(region);
  return Send(command);
}

void WorkerProcess::Condemn(absl::Status cause) {
  if (state_ == State::kDead) return;
  if (!cause_.has_value()) cause_ = std::move(cause);
  child_.Kill();
}

void WorkerProcess::Kill(absl::Status cause) {
  absl::MutexLock lock(&mutex_);
  Condemn(std::move(cause));
}

void WorkerProcess::Shutdown() {
  {
    absl::MutexLock lock(&mutex_);
    if (state_ == State::kDead) return;
    asked_to_end_ = true;
    deadline_ = std::min(deadline_, Now() + kShutdownGrace);
  }
  wire::Command command;
  command.mutable_shutdown();
  (void)Send(command);
  wakeup_.Signal();
}

void WorkerProcess::Release() {
  {
    absl::MutexLock lock(&mutex_);
    if (!asked_to_end_) Condemn(absl::CancelledError("the worker is not needed any more"));
    released_ = true;
  }
  wakeup_.Signal();
}

void WorkerProcess::Retire() {
  {
    absl::MutexLock lock(&mutex_);
    Condemn(absl::CancelledError("the service is shutting down"));
    released_ = true;
  }
  wakeup_.Signal();
}

}  // namespace stride::broker
