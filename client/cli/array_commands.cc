// Commands that run one array operation each.
#include <algorithm>

#include "client/cli/build_operation.h"
#include "client/cli/command.h"
#include "client/cli/emit.h"

namespace stride::cli {
namespace {

template <size_t kIndex>
Result<void> Run(Context& context) {
  return ComputeAndEmit(context, ArrayOperations()[kIndex].build);
}

template <size_t... kIndices>
std::vector<Command> Make(std::index_sequence<kIndices...>) {
  auto command = [](const ArrayOperation& operation, Result<void> (*run)(Context&)) {
    return Command{.name = operation.name,
                   .summary = operation.summary,
                   .usage = operation.usage,
                   .details = operation.details,
                   .options = JoinOptions({ResultOptions(), operation.options}),
                   .run = run};
  };
  return {command(ArrayOperations()[kIndices], Run<kIndices>)...};
}

}  // namespace

std::span<const Command> ArrayCommands() {
  static const std::vector<Command>* const kAll =
      new std::vector<Command>(Make(std::make_index_sequence<kNumArrayOperations>()));
  return *kAll;
}

}  // namespace stride::cli
