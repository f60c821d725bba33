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

// Sets the process's current work for the handler. The compute thread calls BeginFaultScope before
// a task's code runs and EndFaultScope after it.
void BeginFaultScope(uint64_t sequence, const std::string& label, const Work& work);
void EndFaultScope();

// For a handler of SIGSYS. If this thread is in a kernel, reports that the kernel made this system
// call and ends the process; otherwise returns.
void ReportForbiddenCall(int call);

}  // namespace stride::cpu
