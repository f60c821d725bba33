#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/base/memory_file.h"
#include "server/wire/channel.h"
#include "server/wire/worker.pb.h"
#include "server/worker/runtime/device.h"
#include "server/worker/runtime/event_sender.h"

namespace stride::worker {

// The serving side of a worker: reads commands and passes them to the device, on the calling
// thread. The heartbeat of the status page is incremented with each turn, twice a second when idle.
class CommandLoop {
 public:
  CommandLoop(wire::Channel* channel, std::unique_ptr<Device> device);

  // Returns the process's exit code: 0 after Shutdown or when the daemon is gone, 1 when the device
  // did not start, 2 when a command was invalid.
  int Run();

 private:
  enum class Next { kGoOn, kFinish };

  absl::Status Start(const wire::Start& start, std::vector<UniqueFd> descriptors);
  absl::Status MapShared(const wire::Start& start, std::vector<UniqueFd> descriptors);
  // An error is the daemon's mistake and ends the worker.
  absl::StatusOr<Next> Handle(wire::Command& command, std::vector<UniqueFd> descriptors);
  void CreateArena(const wire::CreateArena& command);
  void LoadModule(const wire::LoadModule& command, UniqueFd object);
  absl::Status LoadGraph(wire::LoadGraph& command, std::vector<UniqueFd> descriptors);

  wire::Channel* const channel_;
  EventSender events_;
  MemoryMap staging_;
  MemoryMap status_page_;
  std::unique_ptr<Device> device_;
};

}  // namespace stride::worker
