// Operands typed by users of the command-line client.

#include <cstdint>
#include <string>
#include <string_view>

#include "client/cli/argument.h"
#include "tests/fuzz/driver/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using stride::fuzz::Require;
  namespace cli = stride::cli;
  std::string_view text(reinterpret_cast<const char*>(bytes), size);
  auto argument = cli::ParseArgument(text);
  if (argument.ok() && argument->kind == cli::Argument::Kind::kNumber)
    (void)argument->NumberOperand();
  if (argument.ok() && argument->kind == cli::Argument::Kind::kOut) {
    for (int64_t extent : argument->spec.shape) Require(extent >= 0, "a negative extent");
  }
  auto spec = cli::ParseSpec(text);
  if (spec.ok()) {
    for (int64_t extent : spec->shape) Require(extent >= 0, "a negative extent");
  }
  auto extents = cli::ParseExtents(text);
  if (extents.ok()) Require(!extents->empty(), "no extents");
  auto named = cli::SplitNamedInput(text);
  if (named) Require(named->first + "=" + named->second == text, "a name that was cut wrongly");
  (void)cli::FullArrayName(text);
  return 0;
}
