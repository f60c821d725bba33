// The declarations of generated loops, and of clients' device functions in them: fixed-size
// integers, the math functions, __half and __nv_bfloat16, short vectors.
#pragma once

#include "stride_half.h"

#define __device__
#define __host__
#define __constant__ static const
#define __noinline__ __attribute__((noinline))
#define __restrict __restrict__
#define __forceinline__ inline __attribute__((always_inline))

#include "stride_turns.h"
#include "stride_vectors.h"

// Precedes a loop whose iterations access different elements, and removes the check for overlap at
// run time.
#define STRIDE_PARALLEL _Pragma("clang loop vectorize(assume_safety)")
