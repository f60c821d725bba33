// State of one kernel that the steps of the pass share.
#pragma once

#include <cstdint>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"

namespace stride::cpucuda::spmd {

// Names of the functions that the prelude declares and only the pass understands.
inline constexpr char kThreadX[] = "__stride_tid_x";
inline constexpr char kThreadY[] = "__stride_tid_y";
inline constexpr char kThreadZ[] = "__stride_tid_z";
inline constexpr char kThreadLinear[] = "__stride_tid_linear";
inline constexpr char kField[] = "__stride_field";  // (offset): a 32-bit field of the BlockContext
inline constexpr char kPointer[] = "__stride_pointer";  // (offset): a pointer of the BlockContext
inline constexpr char kContext[] = "__stride_context";  // the BlockContext
inline constexpr char kCut[] = "__stride_cut";          // waits for the block
inline constexpr char kWaitGrid[] = "__stride_wait_grid";  // waits for the grid
inline constexpr char kWaitWarp[] =
    "__stride_wait_warp";  // (mask): waits for lanes; those that go on together
inline constexpr char kInStep[] =
    "__stride_in_step";  // waits for the lanes of the warp that are on the way to it
inline constexpr char kSlot[] =
    "__stride_slot";  // (bytes): an array with so many bytes for each thread
inline constexpr char kSlotClear[] =
    "__stride_slot_clear";  // the same, zeroed once all threads are here

// Metadata on memory accesses of one thread that the next thread's depend on.
inline constexpr char kSerial[] = "stride.serial";

// The name of the function called, or "" when that is not known.
llvm::StringRef CalleeName(const llvm::Instruction& instruction);
bool IsThreadIndex(const llvm::Value* value);

// The code between cuts: threads run from `start` until each of them reaches the start of another
// region.
struct Region {
  llvm::BasicBlock* start = nullptr;
  std::vector<llvm::BasicBlock*> blocks;  // start first
  llvm::SmallVector<int, 4> exits;  // regions that follow; Shape::exit_region for the kernel's end
  std::vector<std::pair<llvm::Value*, uint64_t>>
      clears;           // slots to zero before it runs: base, bytes per thread
  bool scalar = false;  // runs once for the block, has no work for single threads
  unsigned depth = 0;   // loops around it
  unsigned order = 0;   // in reverse post order
};

// Where values live between regions.
struct Slot {
  llvm::Value* base =
      nullptr;  // an alloca for uniform values, else the start of an array over threads
  bool uniform = false;
};

struct Shape {
  llvm::Function* function = nullptr;
  llvm::BasicBlock* prologue = nullptr;  // runs once for the block; its values may be used anywhere
  llvm::BasicBlock* entry = nullptr;     // where a thread starts
  llvm::BasicBlock* exit = nullptr;      // the only return
  llvm::Value* context = nullptr;
  llvm::Value* scratch = nullptr;
  llvm::Value* rounded_threads = nullptr;  // i64
  llvm::Value* block[3] = {};              // blockDim, i32
  llvm::CallInst* thread[4] = {};          // x, y, z, linear: calls at the top of `entry`

  llvm::SetVector<llvm::BasicBlock*> cuts;  // starts of regions
  llvm::DenseMap<llvm::BasicBlock*, std::vector<std::pair<llvm::Value*, uint64_t>>> clears;
  llvm::DenseSet<const llvm::Value*> varying;  // may differ between threads of a block
  llvm::DenseSet<const llvm::Instruction*> divergent_branches;
  bool has_barrier = false;
  bool has_warp_wait = false;
  bool divergent = false;  // threads may be in different regions at a time

  std::vector<Region> regions;
  llvm::DenseMap<llvm::BasicBlock*, int> region_of;
  int exit_region = -1;
  llvm::MapVector<llvm::Value*, Slot> slots;
  uint64_t bytes_per_thread = 0;  // scratch allocated so far, bytes

  // An array in scratch with `bytes` for each thread; its start, computed in the prologue.
  llvm::Value* AllocateArray(uint64_t bytes, const llvm::Twine& name);
  bool IsVarying(const llvm::Value* value) const { return varying.contains(value); }
};

}  // namespace stride::cpucuda::spmd
