// The argument of a compiled kernel: one for each operating system thread that runs blocks. Kernels
// include this same text, so it uses only built-in types. Its layout is the binary interface
// between compiled objects and the runtime.
#ifndef STRIDE_CPUCUDA_BLOCK_CONTEXT_H_
#define STRIDE_CPUCUDA_BLOCK_CONTEXT_H_

namespace stride {
namespace cpucuda {

struct BlockContext;

// One argument of a device printf, widened as C's variable arguments are.
struct PrintArgument {
  enum Kind : unsigned { kInteger, kDouble, kPointer, kString };
  Kind kind;
  unsigned size;  // bytes of the value before widening
  union {
    long long integer;
    double real;
    const void* pointer;
    const char* string;
  };
};

// Calls from a kernel into the runtime. `thread` is threadIdx.
struct KernelRuntime {
  int (*print)(BlockContext* block, const char* format, const PrintArgument* arguments,
               unsigned num_arguments);
  // Ends the launch; does not return. `line` 0 means unknown.
  void (*fail)(BlockContext* block, const char* what, const char* file, unsigned line,
               const unsigned* thread);
  // Per-thread form only: waits for the other threads of the block, or for the lanes of the warp
  // that `mask` names (0: those at `site`). Returns the lanes of the warp that continue together.
  unsigned (*wait)(BlockContext* block, unsigned site, unsigned mask, bool whole_block);
  // Per-thread form only: waits for all threads of the grid. Fails in a launch that is not
  // cooperative.
  void (*wait_grid)(BlockContext* block);
  // The device heap, see device_heap.h. Null when it is full.
  void* (*allocate)(BlockContext* block, unsigned long bytes);
  // False when the heap did not allocate that pointer, or has freed it already.
  bool (*release)(BlockContext* block, void* memory);
};

struct BlockContext {
  const void* parameters;  // packed by offset
  unsigned char* shared;   // static shared memory, then dynamic
  unsigned char* scratch;  // private_bytes_per_thread for each thread, see block_scratch.h
  const KernelRuntime* runtime;
  unsigned grid[3];
  unsigned block[3];
  unsigned block_index[3];
  unsigned thread_index[3];  // per-thread form only
  unsigned dynamic_shared_bytes;
  unsigned shared_bytes;  // static and dynamic
  const unsigned char* scratch_end;
  unsigned cooperative;  // all blocks are there at once
  void* launch;          // private to the launcher
};

}  // namespace cpucuda
}  // namespace stride

#endif  // STRIDE_CPUCUDA_BLOCK_CONTEXT_H_
