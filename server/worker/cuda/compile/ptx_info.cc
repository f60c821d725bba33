#include "server/worker/cuda/compile/ptx_info.h"

#include <cctype>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace stride::cuda {
namespace {

// Splits PTX into words: names, directives with their dot, numbers; any other character by itself.
// Skips comments.
class PtxLexer {
 public:
  explicit PtxLexer(std::string_view text) : text_(text) {}

  // Empty at the end.
  std::string_view Next() {
    SkipSpace();
    if (text_.empty()) return {};
    size_t length = 1;
    if (IsWord(text_[0])) {
      while (length < text_.size() && IsWord(text_[length]) && text_[length] != '.') ++length;
    }
    const std::string_view word = text_.substr(0, length);
    text_.remove_prefix(length);
    return word;
  }

 private:
  static bool IsWord(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_$%.").find(c) != std::string_view::npos;
  }
  void SkipTo(std::string_view end) {
    const size_t at = text_.find(end);
    text_.remove_prefix(at == std::string_view::npos ? text_.size() : at + end.size());
  }
  void SkipSpace() {
    while (!text_.empty()) {
      if (std::isspace(static_cast<unsigned char>(text_[0])) != 0) {
        text_.remove_prefix(1);
      } else if (text_.substr(0, 2) == "//") {
        SkipTo("\n");
      } else if (text_.substr(0, 2) == "/*") {
        SkipTo("*/");
      } else {
        return;
      }
    }
  }

  std::string_view text_;
};

std::optional<uint32_t> Number(std::string_view word) {
  uint32_t value = 0;
  if (!absl::SimpleAtoi(absl::string_view(word.data(), word.size()), &value)) return std::nullopt;
  return value;
}

// Bytes of a fundamental type such as `.u64`, 0 for any other word.
uint32_t TypeBytes(std::string_view word) {
  if (word.size() < 3 || std::string_view("bsuf").find(word[1]) == std::string_view::npos) return 0;
  const std::string_view bits = word.substr(2);
  if (bits == "8") return 1;
  if (bits == "16") return 2;
  if (bits == "32") return 4;
  if (bits == "64") return 8;
  return 0;
}

// Reads one declaration after `.param`, up to its terminating ',' or ')'. False when it is
// malformed.
bool ReadParameter(PtxLexer* lexer, KernelInfo* kernel, std::string_view* terminator) {
  uint32_t bytes = 0, alignment = 0, count = 1;
  bool pointer = false;
  while (true) {
    const std::string_view word = lexer->Next();
    if (word == "," || word == ")") {
      *terminator = word;
      break;
    }
    if (word.empty()) return false;
    if (word == ".align") {
      const auto number = Number(lexer->Next());
      if (!number || *number == 0 || *number > 1024) return false;
      // After .ptr it is the pointee's alignment.
      if (!pointer) alignment = *number;
    } else if (word == ".ptr") {
      pointer = true;
    } else if (word == "[") {
      const auto number = Number(lexer->Next());
      if (!number || *number > 32764 || lexer->Next() != "]") return false;
      count = *number;
    } else if (bytes == 0) {
      bytes = TypeBytes(word);
    }
  }
  if (bytes == 0) return false;
  if (alignment == 0) alignment = bytes;
  uint32_t offset = 0;
  if (!kernel->parameters.empty()) {
    offset = kernel->parameters.back().offset + kernel->parameters.back().size;
  }
  offset = (offset + alignment - 1) / alignment * alignment;
  kernel->parameters.push_back({offset, bytes * count, pointer});
  return offset <= 32764;
}

// Reads the text after `.entry`: NAME, then optional parameters in parentheses.
bool ReadEntry(PtxLexer* lexer, KernelInfo* kernel) {
  kernel->symbol = std::string(lexer->Next());
  if (kernel->symbol.empty()) return false;
  std::string_view word = lexer->Next();
  if (word == "(") {
    word = lexer->Next();
    while (word == ".param") {
      if (!ReadParameter(lexer, kernel, &word)) return false;
      if (word == ",") word = lexer->Next();
    }
    if (word != ")") return false;
    word = lexer->Next();
  }
  uint64_t threads = 1;
  // Directives between the parameters and the body.
  for (; word != "{" && word != ";"; word = lexer->Next()) {
    if (word.empty()) return false;
    if (word != ".maxntid" && word != ".reqntid") continue;
    do {
      threads *= Number(lexer->Next()).value_or(1);
      word = lexer->Next();
    } while (word == ",");
    kernel->max_threads = static_cast<uint32_t>(std::min<uint64_t>(threads, 1024));
    if (word == "{" || word == ";") break;
  }
  return true;
}

// Reads the text after `.global` or `.const`, up to the ';', ',' or '=' that follows the extents.
// False when it is malformed.
bool ReadVariable(PtxLexer* lexer, VariableInfo* variable) {
  uint64_t bytes = 0, count = 1;
  for (std::string_view word = lexer->Next(); word != ";" && word != "," && word != "=";
       word = lexer->Next()) {
    if (word.empty()) return false;
    if (word == ".align") {
      if (!Number(lexer->Next())) return false;
    } else if (word == ".v2" || word == ".v4") {
      count *= word == ".v2" ? 2 : 4;
    } else if (word == "[") {
      const std::string_view extent = lexer->Next();
      if (extent == "]") return true;  // declared elsewhere
      const auto number = Number(extent);
      if (!number || lexer->Next() != "]") return false;
      count *= *number;
    } else if (bytes == 0 && word[0] == '.') {
      bytes = TypeBytes(word);
    } else if (word[0] != '.') {
      variable->symbol = std::string(word);
    }
  }
  variable->size = bytes * count;
  return !variable->symbol.empty();
}

}  // namespace

absl::StatusOr<std::vector<VariableInfo>> ReadPtxVariables(std::string_view ptx) {
  std::vector<VariableInfo> variables;
  PtxLexer lexer(ptx);
  int depth = 0;
  for (std::string_view word = lexer.Next(); !word.empty(); word = lexer.Next()) {
    // Words in parentheses and braces belong to parameters and instructions.
    if (word == "{" || word == "(") ++depth;
    if (word == "}" || word == ")") --depth;
    if (depth != 0 || (word != ".global" && word != ".const")) continue;
    VariableInfo variable;
    variable.constant = word == ".const";
    if (!ReadVariable(&lexer, &variable)) {
      return absl::InvalidArgumentError("cannot read the declaration of a PTX variable");
    }
    variables.push_back(std::move(variable));
  }
  return variables;
}

absl::StatusOr<std::vector<KernelInfo>> ReadPtx(std::string_view ptx) {
  std::vector<KernelInfo> kernels;
  PtxLexer lexer(ptx);
  bool any = false;
  for (std::string_view word = lexer.Next(); !word.empty(); word = lexer.Next()) {
    any = any || word == ".version";
    if (word != ".entry") continue;
    KernelInfo kernel;
    if (!ReadEntry(&lexer, &kernel)) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot read the declaration of PTX kernel `", kernel.symbol, "`"));
    }
    kernels.push_back(std::move(kernel));
  }
  if (!any) return absl::InvalidArgumentError("the text is no PTX: it has no .version");
  return kernels;
}

}  // namespace stride::cuda
