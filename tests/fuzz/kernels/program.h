// A random CUDA kernel as a tree: written as source by text.h, run by interpreter.h.
//
// Every operation is total (no undefined behaviour for any operands). Every program is free of
// races and of barriers that only some threads reach, so that exactly one result is correct.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stride::cpucuda::fuzz {

enum class Type { kBool, kU8, kI16, kI32, kU32, kI64, kF32, kF64 };  // U8, I16: only in arrays

// Variables of every kernel, by index; a generated one is `v7`.
enum : int { kThread, kGlobal, kCount, kParameter, kReal, kFirstOwn };

enum class Op {
  kConstant,  // bits
  kVariable,  // index
  kBuiltin,   // index: threadIdx xyz, blockIdx xyz, blockDim xyz, gridDim xyz
  // Integers wrap around. Shifts use the low bits; divisors are made positive.
  kAdd,
  kSub,
  kMul,
  kAddSmall,  // low 10 bits: cannot overflow, as the compiler knows
  kMulSmall,
  kDiv,
  kRem,
  kAnd,
  kOr,
  kXor,
  kShl,
  kShr,
  kMin,
  kMax,
  kLess,
  kLessEqual,
  kEqual,
  kNot,
  kNegate,
  kPopCount,
  kSquareRoot,  // applies to the magnitude
  kFloor,
  kFusedMultiplyAdd,
  kSelect,
  kCast,       // also a float's value to an integer
  kBits,       // a float's bits as int, 1 for NaN
  kInput,      // in[args[0] & mask]
  kInputNear,  // in[global + bits * args[0]]: adjacent elements for adjacent threads
  kRealInput,  // fin, the same two
  kRealInputNear,
  kConstantMemory,
  kLocal,   // index: which; args[0] & 7
  kShared,  // index: which; args[0]
  kOwn,     // index: which slot of out
  kRealOwn,
  kCall,  // index: which helper
  // Warp operations; args[0] is the mask. Only at the root of an assignment.
  kShuffle,  // value, lane
  kShuffleUp,
  kShuffleDown,
  kShuffleXor,
  kBallot,
  kAny,
  kAll,
  kReduceAdd,
  // Block operations; only at the root of an assignment.
  kCountThreads,
  kAnyThread,
  kAllThreads,
};

struct Expression {
  Op op = Op::kConstant;
  Type type = Type::kI32;
  std::vector<Expression> args;
  uint64_t bits = 0;
  int index = 0;
};

enum class Do {
  kDeclare,  // index = args[0]
  kAssign,   // index = args[0]
  kStore,    // shared index [args[0]] = args[1]
  kLocalStore,
  kOwnStore,  // slot index of out = args[0]
  kRealOwnStore,
  kAtomic,        // operation `extra` on shared index [args[0]] with args[1]
  kGlobalAtomic,  // operation `extra` on acc[extra + 6 * (args[0] & 7)]
  kTicket,        // draws a number from shared index [args[0]], adds its square to acc[0]
  kIf,            // bodies[0] else bodies[1]
  kFor,           // int index = args[0]; index < args[1]; index += extra
  kDoWhile,       // do bodies[0] while (++index < extra && args[0])
  kSwitch,        // args[0] % number of bodies; extra: bit i means that case i falls through
  kBreak,         // when args[0]
  kContinue,
  kReturn,  // when args[0]; in a helper with the value args[1]
  kBarrier,
  kWarpBarrier,
};

struct Statement {
  Do what = Do::kBarrier;
  int index = 0;
  int extra = 0;
  std::vector<Expression> args;
  std::vector<std::vector<Statement>> bodies;
};

enum class Atomic { kAdd, kMin, kMax, kAnd, kOr, kXor };

struct Helper {
  Type result = Type::kI32;
  std::vector<Type> variables;  // parameters first
  int num_parameters = 0;
  std::vector<Statement> body;  // ends in an unconditional return
};

struct SharedArray {
  enum class Where { kStatic, kDynamic, kGlobal };  // kGlobal: the block's part of an array
  Type type = Type::kI32;
  Where where = Where::kStatic;
};

struct Program {
  uint64_t seed = 0;
  bool flat = true;       // launched with x only, and uses no other dimension
  int shared_size = 256;  // elements of each shared array, a power of two
  std::vector<Type> variables;
  std::vector<SharedArray> shared;
  std::vector<Type> locals;  // private arrays of kLocalSize
  std::vector<int> constants;
  std::vector<Helper> helpers;
  std::vector<Statement> body;
  bool warp = false;  // has warp operations
};

inline constexpr int kInputSize = 1 << 14;
inline constexpr int kLocalSize = 8;
inline constexpr int kNumOwn = 3;
inline constexpr int kNumAccumulators = 48;

}  // namespace stride::cpucuda::fuzz
