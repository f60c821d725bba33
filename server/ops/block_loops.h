#pragma once

#include <string>
#include <vector>

#include "server/ops/op_table.h"
#include "server/wire/plan.pb.h"

// The operations of scalar programs as loops over contiguous elements. An elementwise program runs
// as a sequence of these loops over blocks of elements, without compiled code of its own. The code
// generator and the planner read the list. Pure functions; any thread.
namespace stride::ops {

struct BlockLoop {
  const OpRow* row = nullptr;  // null: a cast of the single argument
  std::vector<DType> arguments;
  DType result = DType::kBool;
};

// Every operation with every combination of argument types that programs use, and every cast. A
// cast of bool to bool turns any non-zero byte into 1.
const std::vector<BlockLoop>& BlockLoops();

// Returns the loop's identifier in compiled code: `block_add_float32_float32`,
// `block_cast_int8_bool`.
std::string NameOf(const BlockLoop& loop);

// Returns the loop name of an OP or CAST instruction, whether or not the loop exists.
std::string BlockLoopName(const wire::ScalarProgram& program, const wire::Instruction& instruction);

// Returns the loop's index in BlockLoops() by name, or -1.
int FindBlockLoop(const std::string& name);

// Returns whether each instruction is an input, a constant, the index or one of the loops, and none
// is a client's function.
bool RunsByBlocks(const wire::ScalarProgram& program);

// Entry point of a GPU's module of these loops; it runs a whole program.
inline constexpr char kBlocksEntry[] = "stride_blocks";

// Returns an upper bound of the parameter bytes of a GPU launch by blocks
// (worker/codegen/block_launch.h), for a program over this many operands and axes.
int64_t BlockLaunchBytes(const wire::ScalarProgram& program, int64_t num_operands, int64_t rank);

}  // namespace stride::ops
