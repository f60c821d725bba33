#pragma once

namespace stride::worker {

// In a sealed process (SyscallSet::kSealed, kCompiler) calls that are not allowed raise SIGSYS.
// This handles it, on the signal stack where the thread has one:
//  - opening /proc/self/fd/N gives a duplicate of N, and asking for such a file's state is fstat:
//    so the dynamic loader and the linker, which take paths alone, read memory files while no path
//    can be opened;
//  - all else fails with EACCES, once `judge` has returned. It gets the call's number, and may end
//    the process.
// `judge` must be safe in a signal handler; null: none.
void AnswerTrappedCalls(void (*judge)(int call) = nullptr);

}  // namespace stride::worker
