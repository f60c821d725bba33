#pragma once

#include <string>

namespace stride::cuda {

// Makes the compiler reveal a kernel's parameter types. AppendSignatureQuery adds a variable
// template to the source, which is instantiated with the type of a pointer to the kernel. Its
// mangled name spells all parameter types with their sizes. This also works for extern "C" kernels,
// whose own symbols have no types.
std::string AppendSignatureQuery(const std::string& source);

// The name expression whose lowered name ParseSignature reads.
std::string SignatureExpression(const std::string& entry);
// The name expression of a variable, and the one whose lowered name ParseVariableType reads.
std::string VariableExpression(const std::string& name);
std::string VariableTypeExpression(const std::string& name);

}  // namespace stride::cuda
