#include "cpucuda/compiler/options.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace stride::cpucuda {
namespace {

absl::Status Refuse(const std::string& option, const char* why) {
  return absl::InvalidArgumentError(absl::StrCat("compile option refused: ", why, ": ", option));
}

bool IsMacroName(absl::string_view text) {
  if (text.empty() || absl::ascii_isdigit(text[0])) return false;
  for (char c : text) {
    if (!absl::ascii_isalnum(c) && c != '_') return false;
  }
  return true;
}

absl::Status AddMacro(const std::string& option, Options& options) {
  absl::string_view body = absl::string_view(option).substr(2);
  absl::string_view name = body.substr(0, body.find('='));
  if (!IsMacroName(name)) return Refuse(option, "not a macro name");
  if (body.find('\n') != absl::string_view::npos) return Refuse(option, "a macro is one line");
  options.macros.push_back(option);
  return absl::OkStatus();
}

absl::Status SetStandard(const std::string& option, absl::string_view value, Options& options) {
  if (value != "c++11" && value != "c++14" && value != "c++17" && value != "c++20" &&
      value != "c++03") {
    return Refuse(option, "the standards are c++11, c++14, c++17 and c++20");
  }
  // The prelude needs C++14, so C++11 is compiled as C++14.
  options.standard = (value == "c++11" || value == "c++03") ? "c++14" : std::string(value);
  return absl::OkStatus();
}

bool IsIgnored(absl::string_view option) {
  for (absl::string_view known :
       {"-lineinfo", "--generate-line-info", "-G", "--device-debug", "--extensible-whole-program",
        "-w", "--disable-warnings", "--expt-relaxed-constexpr", "--extended-lambda", "-dc",
        "-rdc=true", "--relocatable-device-code=true"}) {
    if (option == known) return true;
  }
  for (absl::string_view prefix :
       {"-arch=", "--gpu-architecture=", "--maxrregcount=", "-maxrregcount=", "--prec-div=",
        "--prec-sqrt=", "--ftz=", "-ftz=", "--restrict"}) {
    if (absl::StartsWith(option, prefix)) return true;
  }
  return false;
}

absl::Status Add(const std::string& option, Options& options) {
  absl::string_view text = option;
  if (absl::StartsWith(text, "-I") || absl::StartsWith(text, "--include-path")) {
    return Refuse(option,
                  "kernels see no file of the server, so there is no include path; put the text in "
                  "the source");
  }
  if (absl::ConsumePrefix(&text, "--std=") || absl::ConsumePrefix(&text, "-std=")) {
    return SetStandard(option, text, options);
  }
  if (absl::StartsWith(text, "-D") || absl::StartsWith(text, "-U"))
    return AddMacro(option, options);
  if (text == "--use_fast_math" || text == "-use_fast_math") {
    options.fast_math = options.contract = true;
  } else if (text == "-default-device" || text == "--device-as-default-execution-space") {
    options.default_device = true;
  } else if (text == "--fmad=true" || text == "-fmad=true") {
    options.contract = true;
  } else if (text == "--fmad=false" || text == "-fmad=false") {
    options.contract = false;
  } else if (text.size() == 3 && absl::StartsWith(text, "-O") && text[2] >= '0' && text[2] <= '3') {
    options.optimization = text[2] - '0';
  } else if (!IsIgnored(text)) {
    return Refuse(option, "not in the list of allowed options");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments,
                                     bool contract_default) {
  Options options;
  options.contract = contract_default;
  for (const std::string& option : arguments) {
    if (absl::Status status = Add(option, options); !status.ok()) return status;
  }
  return options;
}

}  // namespace stride::cpucuda
