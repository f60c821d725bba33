// The text of an inline assembly statement, taken apart.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace stride::cpucuda {

// One operand: a name, number or special register; or several in braces; or an address in brackets.
struct PtxOperand {
  std::vector<std::string> parts;  // one, or those in braces
  bool is_vector = false;
  bool is_address = false;
  std::string offset;  // the offset of an address, with its sign; may be empty
};

struct PtxStatement {
  std::string guard;  // the register of `@p`, or empty
  bool guard_negated = false;
  std::vector<std::string> opcode;  // "add.u32" is {"add", "u32"}; first ".reg" for a declaration
  std::vector<PtxOperand> operands;
  std::string text;  // for people
};

// Whether one of the opcode's parts after the first is `modifier`.
bool Has(const PtxStatement& statement, absl::string_view modifier);

// `text` is in LLVM's form: operands are $0, $1, and braces are written $( and $).
std::vector<PtxStatement> ParsePtx(absl::string_view text);

}  // namespace stride::cpucuda
