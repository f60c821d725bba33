// Values of one thread: the meaning of each operation, in the host's own C++.
#pragma once

#include "tests/fuzz/kernels/program.h"

namespace stride::cpucuda::fuzz {

// Integers are kept sign or zero extended, floats as their bits.
using Bits = uint64_t;

bool IsReal(Type type);
int SizeOf(Type type);
const char* NameOf(Type type);

Bits Cast(Type from, Type to, Bits value);
// The operands have `type`; comparisons return 0 or 1.
Bits Binary(Op op, Type type, Bits a, Bits b);
Bits Unary(Op op, Type type, Bits a);
Bits FusedMultiplyAdd(Type type, Bits a, Bits b, Bits c);
Bits ApplyAtomic(Atomic atomic, Type type, Bits old, Bits value);
Bits RealBits(Type type, Bits value);  // Op::kBits

Bits ReadArray(Type type, const void* array, int64_t index);
void WriteArray(Type type, void* array, int64_t index, Bits value);

}  // namespace stride::cpucuda::fuzz
