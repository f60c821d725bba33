#include "cpucuda/compiler/ptx_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace stride::cpucuda {
namespace {

std::string WithoutComments(absl::string_view text) {
  std::string kept;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "//") {
      while (i < text.size() && text[i] != '\n') ++i;
      kept += ' ';
    } else if (text.substr(i, 2) == "/*") {
      size_t end = text.find("*/", i + 2);
      i = end == absl::string_view::npos ? text.size() : end + 1;
      kept += ' ';
    } else {
      kept += text[i];
    }
  }
  return kept;
}

// Splits at commas outside of braces and brackets.
std::vector<std::string> SplitOperands(absl::string_view text) {
  std::vector<std::string> all;
  std::string current;
  int depth = 0;
  for (char c : text) {
    depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (c == ',' && depth == 0) {
      all.push_back(current);
      current.clear();
    } else {
      current += c;
    }
  }
  if (!absl::StripAsciiWhitespace(current).empty() || !all.empty()) all.push_back(current);
  return all;
}

PtxOperand ParseOperand(absl::string_view text) {
  PtxOperand operand;
  text = absl::StripAsciiWhitespace(text);
  if (absl::ConsumePrefix(&text, "[")) {
    operand.is_address = true;
    absl::ConsumeSuffix(&text, "]");
    size_t sign = text.find_first_of("+-", 1);
    if (sign != absl::string_view::npos) {
      operand.offset = absl::StrReplaceAll(text.substr(sign), {{" ", ""}});
      text = text.substr(0, sign);
    }
  } else if (absl::ConsumePrefix(&text, "{")) {
    operand.is_vector = true;
    absl::ConsumeSuffix(&text, "}");
    for (absl::string_view part : absl::StrSplit(text, ','))
      operand.parts.emplace_back(absl::StripAsciiWhitespace(part));
    return operand;
  }
  operand.parts.emplace_back(absl::StripAsciiWhitespace(text));
  return operand;
}

PtxStatement ParseStatement(absl::string_view text) {
  PtxStatement statement;
  statement.text = std::string(text);
  if (absl::ConsumePrefix(&text, "@")) {
    statement.guard_negated = absl::ConsumePrefix(&text, "!");
    size_t end = text.find_first_of(" \t\n");
    statement.guard = std::string(text.substr(0, end));
    text = absl::StripLeadingAsciiWhitespace(end == absl::string_view::npos ? absl::string_view()
                                                                            : text.substr(end));
  }
  size_t end = text.find_first_of(" \t\n[{");
  absl::string_view opcode = text.substr(0, end);
  for (absl::string_view part : absl::StrSplit(opcode, '.')) statement.opcode.emplace_back(part);
  absl::string_view rest = end == absl::string_view::npos ? absl::string_view() : text.substr(end);
  if (absl::ConsumePrefix(&opcode, ".")) {
    // A declaration: the rest of the text has its type.
    statement.opcode = {"." + std::string(opcode)};
    rest = absl::StripLeadingAsciiWhitespace(rest);
    size_t space = rest.find_first_of(" \t\n");
    statement.opcode.emplace_back(absl::StripPrefix(rest.substr(0, space), "."));
    rest = space == absl::string_view::npos ? absl::string_view() : rest.substr(space);
  }
  for (const std::string& operand : SplitOperands(rest))
    statement.operands.push_back(ParseOperand(operand));
  return statement;
}

}  // namespace

std::vector<PtxStatement> ParsePtx(absl::string_view text) {
  std::string plain = WithoutComments(
      absl::StrReplaceAll(text, {{"$(", "{"}, {"$)", "}"}, {"$|", "|"}, {"$$", "$"}}));
  std::vector<PtxStatement> statements;
  std::string current;
  for (char c : plain) {
    bool between = absl::StripAsciiWhitespace(current).empty();
    if (between && (c == '{' || c == '}')) continue;
    if (c != ';') {
      current += c;
      continue;
    }
    if (!between) statements.push_back(ParseStatement(absl::StripAsciiWhitespace(current)));
    current.clear();
  }
  if (!absl::StripAsciiWhitespace(current).empty())
    statements.push_back(ParseStatement(absl::StripAsciiWhitespace(current)));
  return statements;
}

bool Has(const PtxStatement& statement, absl::string_view modifier) {
  return std::find(statement.opcode.begin() + 1, statement.opcode.end(), modifier) !=
         statement.opcode.end();
}

}  // namespace stride::cpucuda
