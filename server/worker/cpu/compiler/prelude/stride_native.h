// What our own generated loops see: fixed-size integers, the math functions, __half and
// __nv_bfloat16.
#pragma once

#include "stride_half.h"

#define __device__
#define __forceinline__ inline __attribute__((always_inline))

// Put before a loop whose iterations touch different elements: no check for overlap is then made at
// run time.
#define STRIDE_PARALLEL _Pragma("clang loop vectorize(assume_safety)")
