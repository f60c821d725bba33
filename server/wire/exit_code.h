#pragma once

namespace stride::wire {

// Exit codes by which a worker executable reports why it ended.

// A required layer of the sandbox is not available; EX_OSERR of sysexits.h.
inline constexpr int kNoSandboxExit = 71;
// A compiler exceeded its memory bound.
inline constexpr int kOutOfMemoryExit = 75;
// The machine refused a thread at the start; beyond the codes of sysexits.h.
inline constexpr int kNoThreadExit = 79;

}  // namespace stride::wire
