#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stride::cuda {

// The qualified names of the functions that `source` marks __global__ and that are no templates, in
// order, each once. Reads words, not C++: macros and conditional code can mislead it, so its answer
// is a guess that the compiled object must confirm.
std::vector<std::string> GuessKernelNames(std::string_view source);

// Likewise of those that are templates.
std::vector<std::string> GuessTemplateNames(std::string_view source);

// Likewise of the variables that it marks __constant__ or __device__, templates among them.
std::vector<std::string> GuessVariableNames(std::string_view source);

// The name under which to ask for the kernel with this symbol: `ns::add<float>` for its mangled
// form.
std::string NameOfSymbol(const std::string& symbol);

}  // namespace stride::cuda
