// A driver whose graphs are numbers: counts its objects and records the calls.
#pragma once

#include <set>

#include "server/worker/cuda/driver/driver.h"

namespace stride::cuda {

struct FakeGraphs {
  std::set<CUgraph> graphs;  // not yet destroyed
  std::set<CUgraphExec> executables;
  int num_launches = 0;      // executables
  int num_updates = 0;       // updates of an executable, or of one of its nodes
  bool instantiates = true;  // else the driver refuses
  bool updates = true;
  bool launches = true;
};

// Creates a new driver without objects. One at a time.
FakeGraphs& NewFakeGraphs(Driver* driver);

}  // namespace stride::cuda
