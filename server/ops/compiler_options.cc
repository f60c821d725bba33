#include "server/ops/compiler_options.h"

#include <regex>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::ops {
namespace {

constexpr size_t kMaxOptionBytes = 512;
constexpr int kMaxOptions = 64;

// A macro's value may contain any character but those of a compiler's path escapes: options never
// pass through a shell.
const std::regex& Allowed() {
  static const auto& allowed = *new std::regex(
      "-D[A-Za-z_][A-Za-z0-9_]*(=[^\\n]*)?|-U[A-Za-z_][A-Za-z0-9_]*|--?std=c\\+\\+(11|14|17|20)|--?"
      "use_fast_math|"
      "--?fmad=(true|false)|-O[0-3]|--?maxrregcount=[0-9]{1,3}|--?lineinfo");
  return allowed;
}

}  // namespace

absl::Status CheckCompilerOptions(const google::protobuf::RepeatedPtrField<std::string>& options,
                                  std::string_view field) {
  if (options.size() > kMaxOptions) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, field,
        absl::StrCat("too many compiler options: ", options.size(), ", at most ", kMaxOptions));
  }
  for (int i = 0; i < options.size(); ++i) {
    const std::string& option = options[i];
    if (option.size() <= kMaxOptionBytes && std::regex_match(option, Allowed())) continue;
    return InvalidField(
        v1::ERROR_REASON_OPTION_NOT_ALLOWED, absl::StrCat(std::string(field), "[", i, "]"),
        absl::StrCat(
            "the compiler option is not allowed; -D, -U, --std=c++{11,14,17,20}, --use_fast_math, "
            "--fmad=, -O{0..3}, --maxrregcount= and -lineinfo are: ",
            option.substr(0, 100)),
        {{"option", option.substr(0, 100)}});
  }
  return absl::OkStatus();
}

}  // namespace stride::ops
