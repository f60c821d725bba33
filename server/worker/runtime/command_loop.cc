#include "server/worker/runtime/command_loop.h"

#include <google/protobuf/arena.h>

#include <cstdio>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/spin.h"
#include "server/base/system_error.h"
#include "server/wire/status.h"

namespace stride::worker {
namespace {

constexpr uint32_t kProtocolVersion = 2;
constexpr absl::Duration kIdleHeartbeat = absl::Milliseconds(500);
// Memory of most commands in parsed form; larger ones allocate more.
constexpr size_t kCommandBytes = 64 << 10;

int NumDescriptors(const wire::Command& command) {
  switch (command.kind_case()) {
    case wire::Command::kStart:
      return 2;
    case wire::Command::kMapArena:
    case wire::Command::kMapHostArena:
    case wire::Command::kMapRegion:
    case wire::Command::kLoadModule:
      return 1;
    case wire::Command::kLoadGraph:
      return command.load_graph().in_descriptor() ? 1 : 0;
    default:
      return 0;
  }
}

// Logs failures of commands without a reply: tasks that depend on them fail and report the error to
// the daemon.
void LogFailure(const char* what, const absl::Status& status) {
  if (!status.ok())
    std::fprintf(stderr, "stride worker: %s: %s\n", what, status.ToString().c_str());
}

}  // namespace

CommandLoop::CommandLoop(wire::Channel* channel, std::unique_ptr<Device> device)
    : channel_(channel), events_(channel), device_(std::move(device)) {}

int CommandLoop::Run() {
  // All commands reuse the same memory: a packet of tasks allocates nothing.
  auto memory = std::make_unique<char[]>(kCommandBytes);
  google::protobuf::ArenaOptions options;
  options.initial_block = memory.get();
  options.initial_block_size = kCommandBytes;
  google::protobuf::Arena arena(options);
  std::vector<UniqueFd> descriptors;
  bool started = false;
  for (;;) {
    arena.Reset();
    wire::Command& command = *google::protobuf::Arena::CreateMessage<wire::Command>(&arena);
    auto outcome = channel_->Receive(&command, &descriptors, kIdleHeartbeat, kWatch);
    if (!outcome.ok()) events_.Fatal(0, outcome.status(), /*context_lost=*/false);
    if (started) {
      auto* page = reinterpret_cast<wire::StatusPage*>(status_page_.data());
      page->heartbeat.fetch_add(1, std::memory_order_relaxed);
    }
    if (*outcome == wire::Channel::Outcome::kClosed) return 0;
    if (*outcome == wire::Channel::Outcome::kTimeout) continue;
    if (command.has_start() == started) {
      events_.Fatal(0, absl::InternalError("the first command, and no other, is Start"),
                    /*context_lost=*/false);
    }
    if (!started) {
      absl::Status status = Start(command.start(), std::move(descriptors));
      wire::Event event;
      *event.mutable_started()->mutable_status() = wire::FromStatus(status);
      events_.Send(event);
      if (!status.ok()) return 1;
      started = true;
      continue;
    }
    absl::StatusOr<Next> next = Handle(command, std::move(descriptors));
    if (!next.ok()) events_.Fatal(0, next.status(), /*context_lost=*/false);
    if (*next == Next::kFinish) return 0;
  }
}

absl::Status CommandLoop::Start(const wire::Start& start, std::vector<UniqueFd> descriptors) {
  if (start.protocol_version() != kProtocolVersion) {
    return absl::UnimplementedError(absl::StrCat("the worker speaks protocol ", kProtocolVersion,
                                                 ", the daemon ", start.protocol_version()));
  }
  if (absl::Status s = MapShared(start, std::move(descriptors)); !s.ok()) return s;
  Device::Environment environment;
  environment.device_index = start.device_index();
  environment.num_threads = start.num_threads();
  environment.staging = staging_.data();
  environment.staging_bytes = staging_.size();
  environment.status_page = reinterpret_cast<wire::StatusPage*>(status_page_.data());
  environment.completions = &events_;
  environment.owns_standard_output = true;
  try {
    return device_->Start(environment);
  } catch (const std::system_error& error) {  // the machine refuses the device a thread
    return ThreadError(error.code().value());
  }
}

absl::Status CommandLoop::MapShared(const wire::Start& start, std::vector<UniqueFd> descriptors) {
  if (descriptors.size() != 2) return absl::InternalError("Start takes two descriptors");
  const uint64_t sizes[] = {start.staging_bytes(), wire::kStatusPageBytes};
  MemoryMap* maps[] = {&staging_, &status_page_};
  for (int i = 0; i < 2; ++i) {
    if (absl::Status s = CheckMemoryFile(descriptors[i].get(), sizes[i]); !s.ok()) return s;
    auto map = MemoryMap::Map(descriptors[i].get(), sizes[i], /*writable=*/true);
    if (!map.ok()) return map.status();
    *maps[i] = std::move(*map);
  }
  return absl::OkStatus();
}

absl::StatusOr<CommandLoop::Next> CommandLoop::Handle(wire::Command& command,
                                                      std::vector<UniqueFd> descriptors) {
  if (static_cast<int>(descriptors.size()) != NumDescriptors(command)) {
    return absl::InternalError("a command came with the wrong number of descriptors");
  }
  switch (command.kind_case()) {
    case wire::Command::kCreateArena:
      CreateArena(command.create_arena());
      return Next::kGoOn;
    case wire::Command::kMapArena:
      if (command.map_arena().peer()) {
        LogFailure("mapping another device's arena",
                   device_->MapPeerArena(command.map_arena().arena(), command.map_arena().size(),
                                         std::move(descriptors[0])));
        return Next::kGoOn;
      }
      LogFailure("mapping an arena",
                 device_->MapArena(command.map_arena().arena(), command.map_arena().size(),
                                   std::move(descriptors[0])));
      return Next::kGoOn;
    case wire::Command::kMapHostArena:
      LogFailure("mapping host memory",
                 device_->MapHostArena(command.map_host_arena().arena(),
                                       command.map_host_arena().size(), std::move(descriptors[0])));
      return Next::kGoOn;
    case wire::Command::kUnmapArena:
      LogFailure("unmapping an arena", device_->UnmapArena(command.unmap_arena().arena()));
      return Next::kGoOn;
    case wire::Command::kMapRegion:
      LogFailure("mapping a region",
                 device_->MapRegion(command.map_region().region(), command.map_region().size(),
                                    std::move(descriptors[0])));
      return Next::kGoOn;
    case wire::Command::kUnmapRegion:
      LogFailure("unmapping a region", device_->UnmapRegion(command.unmap_region().region()));
      return Next::kGoOn;
    case wire::Command::kLoadModule:
      LoadModule(command.load_module(), std::move(descriptors[0]));
      return Next::kGoOn;
    case wire::Command::kUnloadModule:
      LogFailure("unloading a module", device_->UnloadModule(command.unload_module().module()));
      return Next::kGoOn;
    case wire::Command::kLoadGraph:
      LogFailure("loading a graph",
                 LoadGraph(*command.mutable_load_graph(), std::move(descriptors)));
      return Next::kGoOn;
    case wire::Command::kUnloadGraph:
      LogFailure("unloading a graph", device_->UnloadGraph(command.unload_graph().graph()));
      return Next::kGoOn;
    case wire::Command::kSubmit:
      device_->EnqueueAll(command.submit().tasks());
      return Next::kGoOn;
    case wire::Command::kCancel:
      if (command.cancel().sequences().empty()) break;
      device_->Cancel(command.cancel().sequences());
      return Next::kGoOn;
    case wire::Command::kCopy:
      device_->Copy(command.copy());
      return Next::kGoOn;
    case wire::Command::kPing: {
      wire::Event event;
      event.mutable_pong()->set_id(command.ping().id());
      events_.Send(event);
      return Next::kGoOn;
    }
    case wire::Command::kShutdown:
      device_->Drain();
      return Next::kFinish;
    case wire::Command::kStart:
    case wire::Command::KIND_NOT_SET:
      break;
  }
  return absl::InternalError("a command that makes no sense");
}

void CommandLoop::CreateArena(const wire::CreateArena& command) {
  absl::StatusOr<UniqueFd> arena = device_->CreateArena(command.arena(), command.size());
  wire::Event event;
  event.mutable_arena_created()->set_arena(command.arena());
  *event.mutable_arena_created()->mutable_status() = wire::FromStatus(arena.status());
  if (arena.ok()) {
    events_.Send(event, {arena->get()});
  } else {
    events_.Send(event);
  }
}

void CommandLoop::LoadModule(const wire::LoadModule& command, UniqueFd object) {
  auto answer = device_->LoadModule(command.module(), std::move(object), command);
  wire::Event event;
  auto* loaded = event.mutable_module_loaded();
  if (answer.ok()) *loaded = *std::move(answer);
  loaded->set_module(command.module());
  *loaded->mutable_status() = wire::FromStatus(answer.status());
  events_.Send(event);
}

absl::Status CommandLoop::LoadGraph(wire::LoadGraph& command, std::vector<UniqueFd> descriptors) {
  if (!command.in_descriptor())
    return device_->LoadGraph(command.graph(), std::move(*command.mutable_steps()));
  const int fd = descriptors[0].get();
  absl::StatusOr<uint64_t> size = MemoryFileSize(fd);
  if (!size.ok()) return size.status();
  if (absl::Status s = CheckMemoryFile(fd, *size); !s.ok()) return s;
  absl::StatusOr<MemoryMap> map = MemoryMap::Map(fd, *size, /*writable=*/false);
  if (!map.ok()) return map.status();
  wire::Graph steps;
  if (!steps.ParseFromArray(map->data(), static_cast<int>(map->size())))
    return absl::InternalError("the message of a graph is malformed");
  return device_->LoadGraph(command.graph(), std::move(steps));
}

}  // namespace stride::worker
