#include "cpucuda/compiler/asm_constraints.h"

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace stride::cpucuda {
namespace {

bool IsWord(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// The position after the string or character literal that begins at `at`.
size_t AfterLiteral(absl::string_view text, size_t at) {
  const char quote = text[at];
  for (size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      return i + 1;
    }
  }
  return text.size();
}

size_t AfterSpace(absl::string_view text, size_t at) {
  while (at < text.size() && (absl::ascii_isspace(text[at]) || text[at] == '\\')) ++at;
  return at;
}

bool TakeWord(absl::string_view text, absl::string_view word, size_t* at) {
  if (text.substr(*at, word.size()) != word) return false;
  const size_t end = *at + word.size();
  if (end < text.size() && IsWord(text[end])) return false;
  *at = AfterSpace(text, end);
  return true;
}

void Replace(std::string& source, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    if (source[i] == 'f' || source[i] == 'd') source[i] = 'x';
    if (source[i] == 'h') source[i] = 'r';
  }
}

// Rewrites the statement whose parenthesis opens at `at` and returns its end. Operands follow the
// first colon; a literal before a parenthesis is a constraint.
size_t RewriteStatement(std::string& source, size_t at) {
  int depth = 0;
  bool operands = false;
  while (at < source.size()) {
    const char c = source[at];
    if (c == '"' || c == '\'') {
      const size_t end = AfterLiteral(source, at);
      const size_t next = AfterSpace(source, end);
      const bool constraint = operands && depth == 1 && next < source.size() && source[next] == '(';
      if (constraint) Replace(source, at + 1, end - 1);
      at = end;
      continue;
    }
    depth += (c == '(') - (c == ')');
    operands = operands || (c == ':' && depth == 1);
    ++at;
    if (depth == 0) break;
  }
  return at;
}

}  // namespace

std::string WithHostConstraints(std::string source) {
  for (size_t at = source.find("asm"); at != std::string::npos; at = source.find("asm", at)) {
    size_t begin = at;
    while (begin > 0 && source[begin - 1] == '_') --begin;
    at += 3;
    while (at < source.size() && source[at] == '_') ++at;
    const bool whole =
        (begin == 0 || !IsWord(source[begin - 1])) && (at == source.size() || !IsWord(source[at]));
    if (!whole) continue;
    size_t next = AfterSpace(source, at);
    while (TakeWord(source, "volatile", &next) || TakeWord(source, "__volatile__", &next)) {
    }
    if (next < source.size() && source[next] == '(') at = RewriteStatement(source, next);
  }
  return source;
}

}  // namespace stride::cpucuda
