#pragma once

#include "server/worker/codegen/launch_abi.h"
#include "server/worker/cuda/driver/arena_table.h"
#include "server/worker/cuda/driver/driver.h"
#include "server/worker/cuda/driver/host_ring.h"
#include "server/worker/cuda/driver/kernel_module.h"
#include "server/worker/cuda/driver/scratch.h"
#include "server/worker/cuda/driver/texture_table.h"

namespace stride::cuda {

// How a task's end is told of: by its last launch, if that can (`told`), else by a write of the
// stream behind it.
struct TaskEnd {
  codegen::EndMark mark;
  bool told = false;
};

// What turning a plan's launch into the driver's launches needs. Each Lower function enqueues on
// `stream` and returns; a status that is not OK means that the task's result is void, though part
// of its launches may have been enqueued.
struct Lowering {
  const Driver& driver;
  CUstream stream;
  const LaunchLimits& limits;
  const ArenaTable& arenas;
  const ArenaTable& peers;  // other devices': for the inputs of elementwise launches
  Scratch& scratch;
  HostRing& values;
  TextureTable& textures;
  // Where a step that is captured notes its fault: zero, and fetched by others. 0: it is the step's
  // own affair.
  CUdeviceptr device_fault = 0;
  TaskEnd* end = nullptr;  // null for a step, whose end nobody asks for
};

}  // namespace stride::cuda
