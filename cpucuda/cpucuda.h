// The public header of cpucuda: CUDA C++ compiled for a CPU, and the runtime that launches it.
// Code outside this folder includes no other header of it. README.md describes the parts.
//
//   Compile()              source to an ELF shared object       library stride_cpucuda_compiler
//   FindTarget()           the processor that code is made for  library stride_cpucuda_compiler
//   Module, Launch()       loads the object, runs a grid        library stride_cpucuda_runtime
//   ThreadPool             the threads that run blocks          library stride_cpucuda_runtime
//   Texture                the target of a texture handle       library stride_cpucuda_runtime
//   CurrentBlock()         for a signal handler: which block    library stride_cpucuda_runtime
//
// The two libraries are independent: a process that only launches links no LLVM.
#pragma once

#include "cpucuda/compiler/compiler.h"
#include "cpucuda/compiler/target.h"
#include "cpucuda/runtime/fault.h"
#include "cpucuda/runtime/launch.h"
#include "cpucuda/runtime/launch_limits.h"
#include "cpucuda/runtime/module.h"
#include "cpucuda/runtime/texture.h"
#include "cpucuda/runtime/thread_pool.h"
