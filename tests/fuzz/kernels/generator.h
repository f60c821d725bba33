// Makes a program from a seed.
#pragma once

#include "tests/fuzz/kernels/program.h"

namespace stride::cpucuda::fuzz {

enum class Flavour {
  kBlock,  // barriers of the block at most
  kWarp,   // shuffles and votes too
};

Program Generate(uint64_t seed, Flavour flavour);

}  // namespace stride::cpucuda::fuzz
