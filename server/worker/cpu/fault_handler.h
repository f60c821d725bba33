#pragma once

#include <cstdint>
#include <string>

#include "cpucuda/cpucuda.h"
#include "server/worker/cpu/lower/work.h"

namespace stride::cpu {

// Turns SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT into a report of which kernel did what and
// where; the process ends after it. Installed once. The threads of the pool get a signal stack
// each, so that a kernel that overran its stack is reported too.
void InstallFaultHandler(cpucuda::ThreadPool& pool);

// Gives the calling thread a signal stack.
void UseSignalStack();

// What the process is working on, for the handler: set by the compute thread before a task's code
// runs, cleared after it.
void BeginFaultScope(uint64_t sequence, const std::string& label, const Work& work);
void EndFaultScope();

// For a handler of SIGSYS: when this thread is in a kernel, the kernel has made this system call,
// and the process ends with a report of it; else returns.
void ReportForbiddenCall(int call);

}  // namespace stride::cpu
