#include <charconv>
#include <cstdio>
#include <filesystem>

#include "client/cli/argument.h"
#include "client/cli/array_json.h"
#include "client/cli/command.h"
#include "client/cli/progress.h"
#include "client/npy/reader.h"

namespace stride::cli {
namespace {

Result<void> Run(Context& context) {
  const auto& arguments = context.line().positionals();
  if (arguments.empty() || arguments.size() > 2)
    return UsageError(PutCommand(), "put takes a file and a name");
  if (arguments.size() == 1 && arguments[0] == "-")
    return UsageError(PutCommand(), "Standard input has no name: give one");
  const std::string name = FullArrayName(
      arguments.size() == 2 ? arguments[1] : std::filesystem::path(arguments[0]).stem().string());
  auto file = npy::Reader::Open(arguments[0]);
  if (!file) return file.error();
  auto client = context.Connect(/*keeps_state=*/true);
  if (!client) return client.error();

  std::vector<std::byte> ordered;
  if (file->fortran_order()) ordered = file->InCOrder();
  const std::span<const std::byte> data =
      file->fortran_order() ? std::span<const std::byte>(ordered) : file->data();
  auto options = context.Call<PutOptions>();
  options.name = name;
  options.device = context.device();
  options.overwrite = context.line().Has("overwrite");
  if (const auto axis = context.line().Value("shard-axis")) {
    int32_t number = 0;
    const auto [end, error] = std::from_chars(axis->data(), axis->data() + axis->size(), number);
    if (error != std::errc() || end != axis->data() + axis->size())
      return UsageError(PutCommand(), "--shard-axis " + std::string(*axis) + " is not a number");
    options.sharding = Sharding{.axis = number};
  }
  if (const auto ttl = context.line().Value("ttl")) {
    const auto time = ParseTime(*ttl);
    if (!time || *time < std::chrono::seconds(1))
      return UsageError(PutCommand(), "--ttl " + *ttl + " is not a time of a second or more");
    options.ttl = std::chrono::duration_cast<std::chrono::seconds>(*time);
  }
  {
    Progress progress(arguments[0], static_cast<int64_t>(data.size()), !context.quiet());
    options.progress = [&progress](int64_t bytes) { progress.Add(bytes); };
    auto array = (*client)->PutBytes(data, file->spec(), options);
    if (!array) return array.error();
    if (!context.json()) {
      std::printf("%s\n", name.c_str());
      return {};
    }
    auto info = array->Describe(context.Call());
    if (!info) return info.error();
    std::printf("%s\n", ToJson(*info).text().c_str());
  }
  return {};
}

}  // namespace

const Command& PutCommand() {
  static const Command kCommand = {
      .name = "put",
      .summary = "keep a .npy file in the daemon under a name",
      .usage = "FILE [NAME]",
      .details = "Prints the full name. NAME is the file's name without .npy when it is not given.",
      .options = {{"overwrite", 0, "",
                   "replace the content of an array of the same type and shape"},
                  {"ttl", 0, "TIME", "how long to keep it (default: for good)"},
                  {"device", 0, "DEVICE", "where to put it, such as cpu:0"},
                  {"shard-axis", 0, "AXIS", "split it along this axis over all devices"}},
      .run = Run};
  return kCommand;
}

}  // namespace stride::cli
