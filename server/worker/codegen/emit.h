#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/wire/plan.pb.h"
#include "server/worker/codegen/program_text.h"

// Code of a plan -> C++ source text, for both device kinds from the same op table. Entry points and
// parameters: launch_abi.h. Pure functions; any thread.
//
// The text is self-contained: no #include. It calls C math functions by their names (sinf, sin,
// powf, ...; all in device/math_names.h):
//   CUDA: NVRTC knows them. Compile for the device's architecture with --std=c++17 (or later) and
//   --extra-device-vectorization, never with
//         --use_fast_math; -fmad=false keeps a fused expression equal to NumPy's operation by
//         operation.
//   CPU:  the compiler's prelude (native loops) must declare them before this text, as `extern "C"`
//   or as overloads of the same names.
//         Compile as C++17 or later with -O3 -fno-math-errno, without -ffast-math
//         (-ffp-contract=off for results as NumPy's).
// Errors: INTERNAL for a plan that the op table does not know, which ops never makes.
namespace stride::codegen {

absl::StatusOr<std::string> EmitElementwiseCuda(const wire::ElementwiseCode& code);
absl::StatusOr<std::string> EmitElementwiseCpu(const wire::ElementwiseCode& code);
absl::StatusOr<std::string> EmitReduceCuda(const wire::ReduceCode& code);
absl::StatusOr<std::string> EmitReduceCpu(const wire::ReduceCode& code);
absl::StatusOr<std::string> EmitMatmulCuda(const wire::MatmulCode& code);
absl::StatusOr<std::string> EmitMatmulCpu(const wire::MatmulCode& code);
absl::StatusOr<std::string> EmitRoutineCuda(const wire::RoutineCode& code);
absl::StatusOr<std::string> EmitRoutineCpu(const wire::RoutineCode& code);
// Each of ops::BlockLoops() as `extern "C" void NAME(const void* a, const void* b, const void* c,
// void* out, long long n)`: elements [0, n) of contiguous arguments; missing arguments are not
// read. `out` may be an argument of the same item size.
std::string EmitBlockLoopsCpu();
// The same loops as functions that one kernel calls for each step of a program: entries and launch
// in block_launch.h.
std::string EmitBlockLoopsCuda();
// The kernel's text for either target. For the CPU, in tests, its entry is `extern "C" void
// stride_blocks(const void* launch, void* slots, long long start, long long skip)`: blocks start,
// start + skip, ...
std::string EmitInterpreter(Target target);

// The text for the kind of `code`; INVALID_ARGUMENT for Code.source.
absl::StatusOr<std::string> EmitCuda(const wire::Code& code);
absl::StatusOr<std::string> EmitCpu(const wire::Code& code);

}  // namespace stride::codegen
