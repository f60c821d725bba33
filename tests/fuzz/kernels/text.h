// A program as CUDA C++.
#pragma once

#include <string>

#include "tests/fuzz/kernels/program.h"

namespace stride::cpucuda::fuzz {

// The text that precedes the kernels.
std::string CommonText();
std::string KernelName(const Program& program);
// Helpers and the kernel `NAME(int* out, float* fout, int* acc, int* gx, const int* in, const
// float* fin, int n, unsigned p, float q)`; n is the number of threads of the launch.
std::string KernelText(const Program& program);

}  // namespace stride::cpucuda::fuzz
