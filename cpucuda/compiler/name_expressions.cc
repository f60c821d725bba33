#include "cpucuda/compiler/name_expressions.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace stride::cpucuda {
namespace {

// The file name in diagnostics about a name expression.
constexpr char kEntriesFile[] = "entries";

}  // namespace

std::string EntrySymbol(size_t index) { return absl::StrCat(kEntryPrefix, index); }

std::string GlobalSymbol(size_t index) { return absl::StrCat(kGlobalPrefix, index); }

absl::Status CheckNameExpression(const std::string& name) {
  constexpr absl::string_view kPunctuation = "_:<>,*&()+-/%|!=~. '\t[]";
  bool valid = !name.empty() && name.size() < 4096;
  for (char c : name)
    valid = valid && (absl::ascii_isalnum(c) || kPunctuation.find(c) != absl::string_view::npos);
  if (valid) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("not a name or template name expression: `", name, "`"));
}

std::string PlainName(const std::string& name) {
  absl::string_view plain = absl::string_view(name).substr(0, name.find('<'));
  while (!plain.empty() && (absl::ascii_isspace(plain[0]) || plain[0] == ':' || plain[0] == '&'))
    plain.remove_prefix(1);
  return std::string(absl::StripTrailingAsciiWhitespace(plain));
}

std::string WithoutOurNames(const std::string& log, const std::vector<std::string>& names) {
  std::string kept;
  bool dropping = false;
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    bool is_note = absl::StrContains(line, ": note: ");
    bool begins =
        is_note || absl::StrContains(line, ": error: ") || absl::StrContains(line, ": warning: ");
    if (begins) {
      dropping =
          is_note && (absl::StrContains(line, "__stride") || absl::StartsWith(line, kEntriesFile));
    }
    // Lines under a diagnostic show the text that it refers to.
    if (dropping || (!begins && absl::StrContains(line, "__stride"))) continue;
    absl::StrAppend(&kept, line, "\n");
  }
  // In reverse order, since `__stride_entry_1` begins `__stride_entry_10`.
  for (size_t i = names.size(); i-- > 0;)
    kept = absl::StrReplaceAll(kept, {{EntrySymbol(i), names[i]}});
  return absl::StrReplaceAll(kept, {{"::__stride::", ""}, {"__stride::", ""}, {"\n\n", "\n"}});
}

std::string GlobalText(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    absl::StrAppend(&text, "\nextern \"C\" __device__ const volatile void* ", GlobalSymbol(i),
                    "() { return (const volatile void*)&", "\n#line 1 \"", kEntriesFile, "\"\n",
                    names[i], "\n; }\n");
  }
  return text;
}

std::string EntryText(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    // The plain mention shows in the syntax tree which function the expression names. Each name has
    // a line of its own, since diagnostics show the line.
    std::string at = absl::StrCat("\n#line 1 \"", kEntriesFile, "\"\n", names[i], "\n");
    absl::StrAppend(&text, "\nextern \"C\" __device__ void ", EntrySymbol(i), "() { (void)&", at,
                    "; ::__stride::entry<decltype(&", at, "), &", at, ">::run(); }\n");
  }
  return text;
}

}  // namespace stride::cpucuda
