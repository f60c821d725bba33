// What our own generated loops see, and clients' device functions within them: fixed-size integers,
// the math functions, __half and __nv_bfloat16, short vectors.
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

// Put before a loop whose iterations touch different elements: no check for overlap is then made at
// run time.
#define STRIDE_PARALLEL _Pragma("clang loop vectorize(assume_safety)")
