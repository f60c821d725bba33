// A driver whose graphs are numbers: what there is of them, and what was done with it.
#pragma once

#include <set>

#include "server/worker/cuda/driver/driver.h"

namespace stride::cuda {

struct FakeGraphs {
  std::set<CUgraph> graphs;  // that have not been destroyed
  std::set<CUgraphExec> executables;
  int num_launches = 0;      // of executables
  int num_updates = 0;       // of an executable, or of one node of it
  bool instantiates = true;  // else the driver refuses
  bool updates = true;
  bool launches = true;
};

// A new driver, with nothing made yet. One at a time.
FakeGraphs& NewFakeGraphs(Driver* driver);

}  // namespace stride::cuda
