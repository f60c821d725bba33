// A wall clock that a test sets while the processes that read it run.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The variable that names the file with the offset: 8 bytes, nanoseconds, native byte order.
#define STRIDE_WALL_CLOCK_FILE "STRIDE_TEST_WALL_CLOCK"

// The offset of CLOCK_REALTIME from the machine's, for this process if no file is given.
void stride_set_wall_clock(int64_t ahead_nanos);

#ifdef __cplusplus
}
#endif
