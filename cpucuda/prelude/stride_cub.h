// CUB's primitives for a block and for a warp. Threads store their items in slots, one thread (or
// one lane of each group) does the work over all of them, and each thread loads its own results. On
// one processor that is the least work. TempStorage is never read.
#pragma once

#include "stride_cub_block.h"
#include "stride_cub_neighbours.h"
#include "stride_cub_warp.h"
