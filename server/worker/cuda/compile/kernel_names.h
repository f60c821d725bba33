#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stride::cuda {

// The qualified names of the __global__ functions of `source` that are not templates, in order,
// without duplicates. Splits the text into words and does not parse C++: macros and conditional
// code can mislead it, so the compiled object must confirm the result.
std::vector<std::string> GuessKernelNames(std::string_view source);

// The same for templates.
std::vector<std::string> GuessTemplateNames(std::string_view source);

// The same for variables marked __constant__ or __device__, including templates.
std::vector<std::string> GuessVariableNames(std::string_view source);

// The name expression of the kernel with this symbol: `ns::add<float>` for its mangled form.
std::string NameOfSymbol(const std::string& symbol);

}  // namespace stride::cuda
