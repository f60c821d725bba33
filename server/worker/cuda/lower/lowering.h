#pragma once

#include "server/worker/codegen/launch_abi.h"
#include "server/worker/cuda/driver/arena_table.h"
#include "server/worker/cuda/driver/driver.h"
#include "server/worker/cuda/driver/host_ring.h"
#include "server/worker/cuda/driver/kernel_module.h"
#include "server/worker/cuda/driver/scratch.h"
#include "server/worker/cuda/driver/texture_table.h"

namespace stride::cuda {

// How a task's end is marked: by its last launch if that supports it (`told`), else by a write of
// the stream after it.
struct TaskEnd {
  codegen::EndMark mark;
  bool told = false;
};

// Inputs of lowering a plan's launch to the driver's launches. Each Lower function enqueues on
// `stream` and returns. With a status other than OK the task's result is undefined, and some of its
// launches may have been enqueued.
struct Lowering {
  const Driver& driver;
  CUstream stream;
  const LaunchLimits& limits;
  const ArenaTable& arenas;
  const ArenaTable& peers;  // other devices' arenas, for inputs of elementwise launches
  Scratch& scratch;
  HostRing& values;
  TextureTable& textures;
  // Where a captured step reports its fault: zeroed and read by the caller. 0: the step handles its
  // fault itself.
  CUdeviceptr device_fault = 0;
  TaskEnd* end = nullptr;  // null for a graph's step, which writes no mark
};

}  // namespace stride::cuda
