// Runs a program without compiling it: every operation for all threads of a block at once, with
// inactive threads masked out. This is a valid order for a race-free program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cpucuda/cpucuda.h"
#include "tests/fuzz/kernels/program.h"

namespace stride::cpucuda::fuzz {

// The memory that a kernel reads and writes.
struct Memory {
  std::vector<int32_t> out;                  // kNumOwn + 1 slots, one value per thread each
  std::vector<float> real;                   // kNumOwn
  std::vector<int32_t> acc;                  // kNumAccumulators
  std::vector<int32_t> gx;                   // shared_size for each block
  const std::vector<int32_t>* in = nullptr;  // kInputSize
  const std::vector<float>* fin = nullptr;
  uint32_t p = 0;
  float q = 0;
};

// Returns "" or the program's own error: a race, or a barrier that some threads miss.
std::string Interpret(const Program& program, const LaunchConfig& launch, Memory& memory);

}  // namespace stride::cpucuda::fuzz
