// Generates a program from a seed.
#pragma once

#include "tests/fuzz/kernels/program.h"

namespace stride::cpucuda::fuzz {

enum class Flavour {
  kBlock,  // at most barriers of the block
  kWarp,   // also shuffles and votes
};

Program Generate(uint64_t seed, Flavour flavour);

}  // namespace stride::cpucuda::fuzz
