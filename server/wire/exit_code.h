#pragma once

namespace stride::wire {

// How a worker executable ends when the daemon is to tell the reason from the exit code.

// A layer of the sandbox that is required cannot be had; EX_OSERR of sysexits.h.
inline constexpr int kNoSandboxExit = 71;
// A compiler met its memory's bound.
inline constexpr int kOutOfMemoryExit = 75;
// The machine gave it no thread when it started; beyond those of sysexits.h.
inline constexpr int kNoThreadExit = 79;

}  // namespace stride::wire
