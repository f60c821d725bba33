#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queue.h"
#include "server/engine/core/task.h"
#include "server/engine/core/task_events.h"
#include "server/engine/memory/memory_manager.h"
#include "server/engine/scheduling/cancellation.h"
#include "server/engine/scheduling/code_loader.h"
#include "server/engine/scheduling/placer.h"
#include "server/engine/scheduling/time_slices.h"

namespace stride::engine {

// Sends prepared tasks to the workers of their queues: by priority, several in a packet, as many as
// the queue's time slice allows. A task whose inputs a task in flight makes may follow it.
//
// A task that is sent without dependents causes no call of TaskEvents.
class Dispatcher {
 public:
  Dispatcher(Core* core, MemoryManager* memory, Placer* placer, TimeSlices* slices,
             Cancellation* cancellation, CodeLoader* code, TaskEvents* events)
      : core_(core),
        memory_(memory),
        placer_(placer),
        slices_(slices),
        cancellation_(cancellation),
        code_(code),
        events_(events) {}

  // Enters a task that has its code and memory into the ready tasks of its queue.
  void Add(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  // Sends what may be sent now.
  void Pump(TenantTransaction& transaction, DeviceQueue& queue);
  // Called before a SubmitBatch ends: sends what became ready in it for workers that have work.
  void FlushBatch(TenantTransaction& transaction);

 private:
  static void PumpSoon(TenantTransaction& transaction, DeviceQueue& queue);
  bool CanSend(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
               DeviceQueue& queue);
  bool SendPacket(TenantTransaction& transaction, DeviceQueue& queue);
  const wire::Task& Bind(const Task& task, DeviceQueue& queue) const;
  void AddToPacket(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                   DeviceQueue& queue, const wire::Task& bound, size_t size);
  absl::Status MapArenas(const Task& task, DeviceQueue& queue);
  void NoteStart(TenantTransaction& transaction, DeviceQueue& queue);

  Core* const core_;
  MemoryManager* const memory_;
  Placer* const placer_;
  TimeSlices* const slices_;
  Cancellation* const cancellation_;
  CodeLoader* const code_;
  TaskEvents* const events_;
};

}  // namespace stride::engine
