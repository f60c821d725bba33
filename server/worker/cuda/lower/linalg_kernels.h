#pragma once

#include <string>

#include "server/store/dtype.h"
#include "server/wire/worker.pb.h"

// Kernels next to those of cuSOLVER, as PTX: they check inputs, join results and note faults.
namespace stride::cuda {

std::string LinalgPtx();
// The entries of LinalgPtx and their parameters.
wire::ModuleDescription DescribeLinalgPtx();

inline constexpr char kNoteEntry[] = "stride_note_info";
// `dtype` may be complex: the entry is that of its real numbers.
std::string FiniteEntry(DType dtype);
std::string JoinEntry(DType dtype);

}  // namespace stride::cuda
