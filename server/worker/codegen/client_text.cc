#include "server/worker/codegen/client_text.h"

#include <cctype>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace stride::codegen {
namespace {

// FNV-1a: the name must be equal on all machines and in all builds.
uint64_t HashOf(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001B3u;
  return hash;
}

std::string SpaceName(const wire::DeviceFunction& function) {
  return absl::StrCat("st_client_", absl::Hex(HashOf(function.source()), absl::kZeroPad16));
}

bool IsName(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  for (unsigned char c : text) {
    if (!std::isalnum(c) && c != '_') return false;
  }
  return true;
}

bool IsInclude(absl::string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::StartsWith(line, "#")) return false;
  line.remove_prefix(1);
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "include");
}

std::vector<const wire::ScalarProgram*> ProgramsOf(const wire::Code& code) {
  std::vector<const wire::ScalarProgram*> programs = {
      &code.elementwise().program(), &code.reduce().map(), &code.reduce().combine_program(),
      &code.reduce().finish()};
  for (const auto& program : code.routine().programs()) programs.push_back(&program.program());
  return programs;
}

}  // namespace

absl::StatusOr<std::string> ClientText(const wire::DeviceFunction& function) {
  if (!IsName(function.entry()))
    return absl::InternalError("the plan is broken: a function's name is none");
  const std::string space = SpaceName(function);
  // A header's declarations belong outside of the namespace; an empty line keeps the other lines'
  // numbers.
  std::string includes, body;
  for (absl::string_view line : absl::StrSplit(function.source(), '\n')) {
    if (IsInclude(line)) {
      absl::StrAppend(&includes, line, "\n");
      body += "\n";
    } else {
      absl::StrAppend(&body, line, "\n");
    }
  }
  return absl::StrCat("#ifndef ", space, "_\n#define ", space, "_\n", includes, "namespace ", space,
                      " {\n#line 1 \"function\"\n", body, "\n#line 1 \"stride\"\n}\n#endif\n");
}

std::string ClientName(const wire::DeviceFunction& function) {
  return absl::StrCat(SpaceName(function), "::", function.entry());
}

bool HasClientText(const wire::Code& code) { return !ClientTexts(code).empty(); }

std::string ClientTexts(const wire::Code& code) {
  std::string texts = code.routine().function().source();
  for (const wire::ScalarProgram* program : ProgramsOf(code)) {
    for (const auto& function : program->functions()) {
      absl::StrAppend(&texts, "\n", function.source());
    }
  }
  return texts;
}

}  // namespace stride::codegen
