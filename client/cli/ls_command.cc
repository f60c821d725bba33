#include <cstdio>

#include "client/cli/array_json.h"
#include "client/cli/command.h"
#include "client/cli/progress.h"

namespace stride::cli {
namespace {

Result<void> Run(Context& context) {
  const auto& arguments = context.line().positionals();
  if (arguments.size() > 1) return UsageError(LsCommand(), "ls takes at most one owner");
  auto client = context.Connect(/*keeps_state=*/true);
  if (!client) return client.error();
  auto arrays =
      (*client)->ListArrays(arguments.empty() ? "tenants/default" : arguments[0], context.Call());
  if (!arrays) return arrays.error();
  if (context.json()) {
    std::vector<Json> items;
    for (const auto& array : *arrays) items.push_back(ToJson(array));
    std::printf("%s\n", Json::Array(items).text().c_str());
    return {};
  }
  for (const auto& array : *arrays) {
    std::string where;
    for (const auto& device : array.devices)
      where += (where.empty() ? "" : ",") + device.substr(device.find('/') + 1);
    std::printf("%-40s %-24s %10s  %-8s %s\n", array.name.c_str(), ToString(array.spec).c_str(),
                FormatBytes(static_cast<double>(array.size_bytes)).c_str(), StateName(array.state),
                where.c_str());
  }
  return {};
}

}  // namespace

const Command& LsCommand() {
  static const Command kCommand = {.name = "ls",
                                   .summary = "list named arrays",
                                   .usage = "[tenants/TENANT | sessions/SESSION]",
                                   .run = Run};
  return kCommand;
}

}  // namespace stride::cli
