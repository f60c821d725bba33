#pragma once

#include <string>
#include <vector>

#include "server/ops/op_table.h"
#include "server/wire/plan.pb.h"

// The operations of scalar programs, each as a loop over elements that lie one after another. With
// these, an elementwise program runs without code of its own: one instruction after another, each
// over a block of elements. Both the code generator and the planner read this list. Pure functions;
// any thread.
namespace stride::ops {

struct BlockLoop {
  const OpRow* row = nullptr;  // null: a cast of the one argument
  std::vector<DType> arguments;
  DType result = DType::kBool;
};

// Every operation with every combination of argument types that programs use, and every cast; a
// cast of bool to bool makes any non-zero byte 1.
const std::vector<BlockLoop>& BlockLoops();

// The loop's name in compiled code, an identifier: `block_add_float32_float32`,
// `block_cast_int8_bool`.
std::string NameOf(const BlockLoop& loop);

// The loop of an instruction of kind OP or CAST, by name, whether or not there is one.
std::string BlockLoopName(const wire::Program& program, const wire::Instruction& instruction);

// The index of the loop in BlockLoops(), by name; -1: there is none.
int FindBlockLoop(const std::string& name);

// Whether each instruction is an input, a constant, the index or one of the loops: no client's
// function.
bool RunsByBlocks(const wire::Program& program);

// The kernel of a GPU's module of these loops, which runs a whole program.
inline constexpr char kBlocksEntry[] = "stride_blocks";

// An upper bound of the bytes that a launch by blocks takes as a GPU kernel's parameters
// (worker/codegen/block_launch.h): of a program over so many operands and axes.
int64_t BlockLaunchBytes(const wire::Program& program, int64_t num_operands, int64_t rank);

}  // namespace stride::ops
