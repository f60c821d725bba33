#include "server/worker/cpu/compiler/name_expressions.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace stride::cpu {

std::string EntrySymbol(size_t index) { return absl::StrCat("__stride_entry_", index); }

absl::Status CheckNameExpression(const std::string& name) {
  constexpr absl::string_view kPunctuation = "_:<>,*&()+-/%|!=~. '\t[]";
  bool valid = !name.empty() && name.size() < 4096;
  for (char c : name)
    valid = valid && (absl::ascii_isalnum(c) || kPunctuation.find(c) != absl::string_view::npos);
  if (valid) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("not a kernel name or template name expression: `", name, "`"));
}

std::string EntryText(const std::vector<std::string>& names) {
  std::string text = "\n#line 1 \"name_expressions\"\n";
  for (size_t i = 0; i < names.size(); ++i) {
    // The plain mention lets the syntax tree be asked which function the expression names.
    absl::StrAppend(&text, "extern \"C\" __device__ void ", EntrySymbol(i), "() { (void)&",
                    names[i], "; ::__stride::entry<decltype(&", names[i], "), &", names[i],
                    ">::run(); }\n");
  }
  return text;
}

}  // namespace stride::cpu
