#include "server/worker/cuda/compile/compile_options.h"

#include <algorithm>
#include <cctype>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace stride::cuda {
namespace {

bool IsIdentifier(absl::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// NAME, NAME=value or NAME(a,b)=value, all on one line.
bool IsDefinition(absl::string_view text) {
  const bool printable =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
  return printable && IsIdentifier(text.substr(0, text.find_first_of("=(")));
}

// Options of nvcc and NVRTC without effect here: code is compiled whole and without a debugger, and
// NVRTC accepts by default what some of them allow.
bool ChangesNothing(absl::string_view option) {
  for (absl::string_view known :
       {"G", "g", "device-debug", "dc", "rdc=true", "rdc=false", "relocatable-device-code=true",
        "relocatable-device-code=false", "expt-relaxed-constexpr", "expt-extended-lambda",
        "extended-lambda", "extensible-whole-program"}) {
    if (option == known) return true;
  }
  return false;
}

// Translates an option for NVRTC, to an empty text when it needs none; false when it is not
// allowed.
bool Translate(absl::string_view option, std::string* translated) {
  absl::string_view rest = option;
  translated->assign(option.data(), option.size());
  if (absl::ConsumePrefix(&rest, "-D")) return IsDefinition(rest);
  if (absl::ConsumePrefix(&rest, "-U")) return IsIdentifier(rest);
  // NVRTC accepts one dash and two dashes alike.
  if (!absl::ConsumePrefix(&rest, "--") && !absl::ConsumePrefix(&rest, "-")) return false;
  if (rest == "std=c++11" || rest == "std=c++14" || rest == "std=c++17" || rest == "std=c++20") {
    return true;
  }
  if (rest == "use_fast_math" || rest == "lineinfo" || rest == "generate-line-info") return true;
  for (absl::string_view name : {"fmad=", "ftz=", "prec-div=", "prec-sqrt="}) {
    absl::string_view value = rest;
    if (absl::ConsumePrefix(&value, name)) return value == "true" || value == "false";
  }
  if (rest == "default-device" || rest == "device-as-default-execution-space") {
    *translated = "--device-as-default-execution-space";
    return true;
  }
  if (rest == "w" || rest == "disable-warnings") {
    *translated = "--disable-warnings";
    return true;
  }
  if (rest == "restrict" || rest == "extra-device-vectorization") {
    *translated = absl::StrCat("--", rest);
    return true;
  }
  if (ChangesNothing(rest)) {
    translated->clear();
    return true;
  }
  if (rest == "O0" || rest == "O1" || rest == "O2" || rest == "O3") {
    *translated = absl::StrCat("--ptxas-options=-", rest);
    return true;
  }
  if (absl::ConsumePrefix(&rest, "maxrregcount=")) {
    int count = 0;
    return absl::SimpleAtoi(rest, &count) && count >= 16 && count <= 255;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> TranslateOptions(const std::vector<std::string>& options) {
  std::vector<std::string> translated;
  for (const std::string& option : options) {
    std::string text;
    if (!Translate(option, &text)) {
      return absl::InvalidArgumentError(absl::StrCat("compiler option not allowed: ", option));
    }
    if (!text.empty()) translated.push_back(std::move(text));
  }
  return translated;
}

}  // namespace stride::cuda
