#pragma once

namespace stride::worker {

// In a sealed process (SyscallSet::kSealed, kCompiler) forbidden calls raise SIGSYS. This installs
// its handler, on the signal stack where the thread has one:
//  - opening /proc/self/fd/N returns a duplicate of N, and a state query of such a file is fstat.
//    So the dynamic loader and the linker, which take only paths, read memory files without path
//    lookups;
//  - other calls fail with EACCES, once `judge` has returned. It gets the call's number, and may
//    end the process.
// `judge` must be safe in a signal handler; null: none.
void AnswerTrappedCalls(void (*judge)(int call) = nullptr);

}  // namespace stride::worker
