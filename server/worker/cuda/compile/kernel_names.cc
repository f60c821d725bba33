#include "server/worker/cuda/compile/kernel_names.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace stride::cuda {
namespace {

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Words and single characters, without comments, literals and preprocessor lines.
std::vector<std::string> Words(std::string_view source) {
  std::vector<std::string> words;
  auto at = [&](size_t i) { return i < source.size() ? source[i] : '\0'; };
  bool line_start = true;
  for (size_t i = 0; i < source.size();) {
    const char c = source[i];
    if (c == '\n') {
      line_start = true;
      ++i;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++i;
    } else if (c == '/' && at(i + 1) == '/') {
      i = std::min(source.find('\n', i), source.size());
    } else if (c == '/' && at(i + 1) == '*') {
      const size_t end = source.find("*/", i + 2);
      i = end == std::string_view::npos ? source.size() : end + 2;
    } else if (c == '#' && line_start) {
      while (i < source.size() && source[i] != '\n') i += source[i] == '\\' ? 2 : 1;
    } else if (c == '"' || c == '\'') {
      for (++i; i < source.size() && source[i] != c; ++i) {
        if (source[i] == '\\') ++i;
      }
      ++i;
      words.push_back("\"");
    } else {
      line_start = false;
      size_t end = i + 1;
      if (IsNameCharacter(c)) {
        while (IsNameCharacter(at(end))) ++end;
      }
      words.emplace_back(source.substr(i, end - i));
      i = end;
    }
  }
  return words;
}

size_t AfterParentheses(const std::vector<std::string>& words, size_t open) {
  int depth = 0;
  for (size_t i = open; i < words.size(); ++i) {
    if (words[i] == "(") ++depth;
    if (words[i] == ")" && --depth == 0) return i + 1;
  }
  return words.size();
}

// The function's name in a declaration that continues at `at`: the name before its parameters.
// Skips attributes with parentheses.
std::string DeclaredName(const std::vector<std::string>& words, size_t at) {
  std::string last;
  while (at < words.size()) {
    const std::string& word = words[at];
    if (word == "(" && (last == "__launch_bounds__" || last == "__attribute__" ||
                        last == "__maxnreg__" || last == "__cluster_dims__")) {
      at = AfterParentheses(words, at);
    } else if (word == "(") {
      return last;
    } else if (!IsNameCharacter(word[0])) {
      return "";
    } else {
      last = word;
      ++at;
    }
  }
  return "";
}

std::vector<std::string> GuessNames(std::string_view source, bool templates) {
  const std::vector<std::string> words = Words(source);
  std::vector<std::string> names, scopes;  // a scope: a namespace's name, or empty for other braces
  std::string opening;                     // name of the namespace whose brace follows
  bool in_template = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "template") in_template = true;
    if (word == ";" || word == "}" || word == "{") in_template = false;
    if (word == "namespace" && i + 2 < words.size() && words[i + 2] == "{") opening = words[i + 1];
    if (word == "{") {
      scopes.push_back(opening);
      opening.clear();
    } else if (word == "}" && !scopes.empty()) {
      scopes.pop_back();
    } else if (word == "__global__" && in_template == templates) {
      std::string name = DeclaredName(words, i + 1);
      if (name.empty()) continue;
      std::string qualified;
      for (const std::string& scope : scopes) {
        if (!scope.empty()) absl::StrAppend(&qualified, scope, "::");
      }
      qualified += name;
      if (std::find(names.begin(), names.end(), qualified) == names.end()) {
        names.push_back(std::move(qualified));
      }
    }
  }
  return names;
}

// The name of the variable in a declaration that continues at `at`; empty for a function.
std::string DeclaredVariable(const std::vector<std::string>& words, size_t at) {
  std::string last;
  int templates = 0;
  for (; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "<") ++templates;
    if (word == ">") --templates;
    if (templates > 0 || word == ">") continue;
    if (word == "(" && (last == "__align__" || last == "__attribute__" || last == "alignas")) {
      at = AfterParentheses(words, at) - 1;
      continue;
    }
    if (word == ";" || word == "=" || word == "[" || word == "{" || word == ",") return last;
    if (word == "(" || word == ")" || word == "}") return "";
    if (IsNameCharacter(word[0])) last = word;
  }
  return "";
}

}  // namespace

std::vector<std::string> GuessVariableNames(std::string_view source) {
  const std::vector<std::string> words = Words(source);
  std::vector<std::string> names;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] != "__constant__" && words[i] != "__device__") continue;
    const std::string name = DeclaredVariable(words, i + 1);
    if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) continue;
    names.push_back(name);
  }
  return names;
}

std::vector<std::string> GuessKernelNames(std::string_view source) {
  return GuessNames(source, /*templates=*/false);
}

std::vector<std::string> GuessTemplateNames(std::string_view source) {
  return GuessNames(source, /*templates=*/true);
}

std::string NameOfSymbol(const std::string& symbol) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  if (demangled == nullptr || status != 0) return symbol;
  std::string name(demangled);
  std::free(demangled);
  // `void add<float>(float const*)`: only templates have the result's type.
  if (name.rfind("void ", 0) == 0) name.erase(0, 5);
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (name[i] == '(' && depth == 0 && name.compare(i, 21, "(anonymous namespace)") != 0) {
      name.resize(i);
      break;
    }
  }
  return name;
}

}  // namespace stride::cuda
