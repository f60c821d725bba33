#include "server/worker/cuda/compile/include_check.h"

#include <cctype>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace stride::cuda {
namespace {

bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// Removes spaces and /* comments */ from the front.
std::string_view SkipFront(std::string_view text) {
  while (!text.empty()) {
    if (IsSpace(text.front())) {
      text.remove_prefix(1);
    } else if (text.substr(0, 2) == "/*" && text.find("*/", 2) != std::string_view::npos) {
      text.remove_prefix(text.find("*/", 2) + 2);
    } else {
      break;
    }
  }
  return text;
}

// The same from the back.
std::string_view SkipBack(std::string_view text) {
  while (!text.empty()) {
    if (IsSpace(text.back())) {
      text.remove_suffix(1);
    } else if (absl::EndsWith(absl::string_view(text.data(), text.size()), "*/") &&
               text.rfind("/*") != std::string_view::npos) {
      text = text.substr(0, text.rfind("/*"));
    } else {
      break;
    }
  }
  return text;
}

// `#`, or its alternative spellings in C++.
bool EndsInHash(std::string_view text) {
  const absl::string_view before(text.data(), text.size());
  return absl::EndsWith(before, "#") || absl::EndsWith(before, "%:") ||
         absl::EndsWith(before, "?\?=");
}

absl::Status CheckName(std::string_view after) {
  if (after.empty() || (after[0] != '"' && after[0] != '<')) {
    return absl::InvalidArgumentError("an #include must name its header directly");
  }
  const std::string_view name = after.substr(1, after.find_first_of("\">\n", 1) - 1);
  if (name.empty() || name[0] == '/' || name.find("..") != std::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("an #include may name headers of the toolkit alone: ", std::string(name)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckIncludes(std::string_view source) {
  // Join lines first, as the compiler does.
  const std::string joined = absl::StrReplaceAll(absl::string_view(source.data(), source.size()),
                                                 {{"\\\n", ""}, {"\\\r\n", ""}});
  const std::string_view text = joined;
  constexpr std::string_view kDirective = "include";
  for (size_t at = text.find(kDirective); at != std::string_view::npos;
       at = text.find(kDirective, at + 1)) {
    if (!EndsInHash(SkipBack(text.substr(0, at)))) continue;
    std::string_view after = text.substr(at + kDirective.size());
    if (after.substr(0, 5) == "_next") after.remove_prefix(5);
    if (absl::Status status = CheckName(SkipFront(after)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace stride::cuda
