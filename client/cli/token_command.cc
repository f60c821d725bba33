#include <cstdio>

#include "client/cli/command.h"
#include "client/cli/json.h"
#include "server/identity/token.h"

namespace stride::cli {
namespace {

// Rejects characters that would end the line or the word in the tenants file.
bool IsWord(const std::string& text, std::string_view also) {
  if (text.empty() || text.size() > 63) return false;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    if (!plain && also.find(c) == also.npos) return false;
  }
  return true;
}

Result<void> Run(Context& context) {
  const auto& arguments = context.line().positionals();
  if (arguments.size() != 1 || arguments[0] != "new")
    return UsageError(TokenCommand(), "token knows one thing to do: new");
  const auto name = context.line().Value("name");
  if (name && !IsWord(*name, ""))
    return UsageError(TokenCommand(), "--name must match [a-z0-9-]{1,63}");
  const auto expires = context.line().Value("expires");
  if (expires && !IsWord(*expires, "TZ:.+"))
    return UsageError(TokenCommand(), "--expires is a day such as 2027-06-30");
  const std::string token = identity::NewToken();
  std::string line = "token = " + identity::ToText(identity::HashToken(token));
  if (name) line += " name=" + *name;
  if (expires) line += " expires=" + *expires;
  if (context.json()) {
    const Json object =
        Json::Object({{"token", Json::String(token)}, {"line", Json::String(line)}});
    std::printf("%s\n", object.text().c_str());
    return {};
  }
  // Standard output has only the token, so that it can be redirected to a file.
  std::printf("%s\n", token.c_str());
  std::fflush(stdout);
  std::fprintf(stderr,
               "That is the token, for its holder: this is the only time it is shown. For the "
               "tenant's section of the tenants file:\n%s\n",
               line.c_str());
  return {};
}

}  // namespace

const Command& TokenCommand() {
  static const Command kCommand = {
      .name = "token",
      .summary = "make a bearer token",
      .usage = "new [--name NAME] [--expires DAY]",
      .details =
          "Prints a random token on standard output and, on standard error, the line that "
          "makes the daemon take it.\nThe daemon keeps only its hash. No daemon is asked.",
      .options = {{"name", 0, "NAME", "the owner, for the audit log"},
                  {"expires", 0, "DAY", "such as 2027-06-30, or 2027-06-30T18:00:00Z"}},
      .run = Run};
  return kCommand;
}

}  // namespace stride::cli
