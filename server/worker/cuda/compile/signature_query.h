#pragma once

#include <string>

namespace stride::cuda {

// How the compiler is made to tell a kernel's parameter types. A variable template, appended to the
// source, is instantiated with the type of a pointer to the kernel; its mangled name then spells
// every parameter type, also for extern "C" kernels, whose own symbols say nothing, and with each
// type's size.
std::string AppendSignatureQuery(const std::string& source);

// The name expression whose lowered name ParseSignature reads.
std::string SignatureExpression(const std::string& entry);
// The name expression of a variable, and that whose lowered name ParseVariableType reads.
std::string VariableExpression(const std::string& name);
std::string VariableTypeExpression(const std::string& name);

}  // namespace stride::cuda
