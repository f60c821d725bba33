// Operations from command lines, alike for commands that run now and for jobs.
#pragma once

#include "client/cli/command_line.h"
#include "client/cli/operands.h"
#include "stride/operation.h"

namespace stride::cli {

// Options that the builders read, for the commands' tables.
std::vector<OptionSpec> UfuncOptionSpecs();
std::vector<OptionSpec> ReduceOptionSpecs();  // those of a ufunc too
std::vector<OptionSpec> KernelOptionSpecs();

// Builds one kind of operation from a command line.
using OperationBuilder = Result<Operation> (*)(std::span<const std::string> arguments,
                                               const CommandLine& line, OperandSource& source);

// `arguments` are the positionals of the command. --dtype, --axis, --keepdims, --entry, --grid, ...
// come from `line`. `NAME a b` calls a ufunc; `EXPRESSION x=a y=b` computes a text.
Result<Operation> BuildUfunc(std::span<const std::string> arguments, const CommandLine& line,
                             OperandSource& source);
// `FUNCTION a`
Result<Operation> BuildReduce(std::span<const std::string> arguments, const CommandLine& line,
                              OperandSource& source);
// `a b`
Result<Operation> BuildMatmul(std::span<const std::string> arguments, const CommandLine& line,
                              OperandSource& source);
// An operation of one or two arrays and a few options, which is a command of its own.
struct ArrayOperation {
  std::string name;  // of the command
  std::string summary, usage, details;
  std::vector<OptionSpec> options;
  OperationBuilder build;
};
// sort, accumulate, take, topk, histogram, linalg, fft, random.
inline constexpr size_t kNumArrayOperations = 8;
std::span<const ArrayOperation> ArrayOperations();

// The builder of `ufunc`, `reduce`, `matmul` or an array operation; null for another name.
OperationBuilder FindBuilder(std::string_view name);
// Options that any of these may read, each once.
std::vector<OptionSpec> BuilderOptionSpecs();

// What the builders share: an array or number from a word, --dtype, and the numbers of --axis and
// the like, `N[,N]`, which may be repeated.
Result<Operand> ResolveText(const std::string& text, OperandSource& source);
Result<DataType> ReadDataType(const CommandLine& line);
Result<std::vector<int64_t>> ReadNumbers(const CommandLine& line, const std::string& option);

// A launch, and the arguments `inout:`, which are results beside the launch's own.
struct BuiltKernel {
  Operation operation;
  // For each result in order of arguments: an array uploaded for `inout:`, or nothing for the
  // launch's next new array.
  std::vector<std::optional<Array>> results;
};
// `FILE a b out:int32[9] 4:int32`; FILE ends in .cu, .ptx or .cubin/.fatbin, or is a module's full
// name.
Result<BuiltKernel> BuildKernel(std::span<const std::string> arguments, const CommandLine& line,
                                UploadingSource& source);

}  // namespace stride::cli
