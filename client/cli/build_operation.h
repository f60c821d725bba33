// Builds operations from command lines, for commands that run now and for jobs.
#pragma once

#include "client/cli/command_line.h"
#include "client/cli/operands.h"
#include "stride/operation.h"

namespace stride::cli {

// Options that the builders read, for the commands' tables.
std::vector<OptionSpec> UfuncOptionSpecs();
std::vector<OptionSpec> ReduceOptionSpecs();  // includes the options of a ufunc
std::vector<OptionSpec> KernelOptionSpecs();

// Builds one kind of operation from a command line.
using OperationBuilder = Result<Operation> (*)(std::span<const std::string> arguments,
                                               const CommandLine& line, OperandSource& source);

// `arguments` are the command's positionals; `line` holds options such as --dtype, --axis and
// --grid. `NAME a b` calls a ufunc; `EXPRESSION x=a y=b` computes an expression.
Result<Operation> BuildUfunc(std::span<const std::string> arguments, const CommandLine& line,
                             OperandSource& source);
// Arguments: `FUNCTION a`.
Result<Operation> BuildReduce(std::span<const std::string> arguments, const CommandLine& line,
                              OperandSource& source);
// Arguments: `a b`.
Result<Operation> BuildMatmul(std::span<const std::string> arguments, const CommandLine& line,
                              OperandSource& source);
// An operation on one or two arrays with few options, which has its own command.
struct ArrayOperation {
  std::string name;  // the command's name
  std::string summary, usage, details;
  std::vector<OptionSpec> options;
  OperationBuilder build;
};
// sort, accumulate, take, topk, histogram, linalg, fft, random.
inline constexpr size_t kNumArrayOperations = 8;
std::span<const ArrayOperation> ArrayOperations();

// Returns the builder of `ufunc`, `reduce`, `matmul` or an array operation; null for another name.
OperationBuilder FindBuilder(std::string_view name);
// Returns the options of all builders, without duplicates.
std::vector<OptionSpec> BuilderOptionSpecs();

// Helpers of all builders: resolve an array or a number, read --dtype, and read options such as
// --axis. A number option is written `N[,N]` and may be repeated.
Result<Operand> ResolveText(const std::string& text, OperandSource& source);
Result<DataType> ReadDataType(const CommandLine& line);
Result<std::vector<int64_t>> ReadNumbers(const CommandLine& line, const std::string& option);

// A launch, and its results: those of `out:` and of `inout:` arguments.
struct BuiltKernel {
  Operation operation;
  // One element per result, in argument order: the uploaded array of `inout:`, or nullopt for a new
  // array of the launch.
  std::vector<std::optional<Array>> results;
};
// Arguments: `FILE a b out:int32[9] 4:int32`. FILE ends in .cu, .ptx, .cubin or .fatbin, or is the
// full name of a module.
Result<BuiltKernel> BuildKernel(std::span<const std::string> arguments, const CommandLine& line,
                                UploadingSource& source);

}  // namespace stride::cli
