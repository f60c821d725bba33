#include "client/cli/emit.h"

#include <algorithm>
#include <cstdio>

#include "client/cli/elements.h"
#include "client/cli/json.h"
#include "client/cli/progress.h"
#include "client/npy/writer.h"

namespace stride::cli {
namespace {

// Larger results are not printed.
constexpr int64_t kMaxPrinted = 1000;

struct Fetched {
  ArraySpec spec;
  std::string path;             // empty: print the elements
  std::vector<std::byte> data;  // empty when written to `path`
};

Result<void> FetchWithProgress(Context& context, Client& client, const Array& array,
                               const ArraySpec& spec, const std::string& label,
                               std::span<std::byte> out) {
  Progress progress(label, static_cast<int64_t>(out.size()), !context.quiet());
  auto options = context.Call<TransferOptions>();
  options.progress = [&progress](int64_t bytes) { progress.Add(bytes); };
  return client.FetchBytes(array, out, spec.data_type, options);
}

Result<Fetched> FetchOne(Context& context, Client& client, const Array& array,
                         const std::string& path) {
  auto spec = array.Spec(context.Call());
  if (!spec) return spec.error();
  Fetched fetched{.spec = *spec, .path = path};
  if (path.empty()) {
    if (NumElements(*spec).value_or(0) > kMaxPrinted) {
      // Report the failure of an operation before the size of its result.
      if (auto made = array.Wait(context.Call()); !made) return made.error();
      return Error{
          .code = Code::kInvalidArgument,
          .message = "The result is " + ToString(*spec) +
                     ", too much to print: name a file with -o, or `-o -` for standard output"};
    }
    fetched.data.resize(static_cast<size_t>(SizeBytes(*spec).value_or(0)));
    auto got = FetchWithProgress(context, client, array, *spec, "result", fetched.data);
    if (!got) return got.error();
    return fetched;
  }
  auto writer = npy::Writer::Create(path, *spec, context.line().Has("raw"));
  if (!writer) return writer.error();
  if (auto got = FetchWithProgress(context, client, array, *spec, path, writer->data()); !got)
    return got.error();
  if (auto committed = writer->Commit(); !committed) return committed.error();
  return fetched;
}

void Print(const Fetched& fetched) {
  const auto item = static_cast<size_t>(ItemSize(fetched.spec.data_type));
  const size_t count = fetched.data.size() / item;
  // Print one line per row of the last axis.
  const size_t row = fetched.spec.shape.empty()
                         ? 1
                         : static_cast<size_t>(std::max<int64_t>(1, fetched.spec.shape.back()));
  for (size_t i = 0; i < count; ++i) {
    std::fputs(FormatElement(fetched.spec.data_type, fetched.data.data() + i * item).c_str(),
               stdout);
    std::fputc((i + 1) % row == 0 || i + 1 == count ? '\n' : ' ', stdout);
  }
}

Json ElementJson(DataType type, const std::byte* data) {
  const std::string text = FormatElement(type, data);
  const bool plain =
      text.find_first_not_of("0123456789+-.e") == std::string::npos || type == DataType::kBool;
  return plain ? Json::Raw(text) : Json::String(text);
}

Json ToJson(const Fetched& fetched) {
  std::vector<Json> shape;
  for (int64_t extent : fetched.spec.shape) shape.push_back(Json::Integer(extent));
  std::vector<std::pair<std::string, Json>> members = {
      {"data_type", Json::String(Name(fetched.spec.data_type))}, {"shape", Json::Array(shape)}};
  if (!fetched.path.empty()) {
    members.emplace_back("output", Json::String(fetched.path));
  } else {
    std::vector<Json> data;
    const auto item = static_cast<size_t>(ItemSize(fetched.spec.data_type));
    for (size_t at = 0; at < fetched.data.size(); at += item)
      data.push_back(ElementJson(fetched.spec.data_type, fetched.data.data() + at));
    members.emplace_back("data", Json::Array(data));
  }
  return Json::Object(members);
}

// Phases in order of time. The client measures `put` and `fetch`, network included; the daemon
// measures the others.
std::vector<std::pair<std::string, std::chrono::nanoseconds>> Phases(
    const std::optional<Timeline>& timeline, std::chrono::nanoseconds put,
    std::chrono::nanoseconds fetch) {
  std::vector<std::pair<std::string, std::chrono::nanoseconds>> phases = {{"put", put}};
  if (timeline) {
    phases.insert(phases.end(), {{"queue", timeline->queue - timeline->compile},
                                 {"compile", timeline->compile},
                                 {"upload", timeline->upload},
                                 {"run", timeline->run}});
  }
  phases.emplace_back("fetch", fetch);
  return phases;
}

}  // namespace

std::vector<OptionSpec> ResultOptions() {
  return {{"output", 'o', "FILE",
           "write the result as .npy; `-` is standard output; repeat it for several results"},
          {"raw", 0, "", "write the elements alone, without a .npy header"},
          {"device", 0, "DEVICE", "run here, such as cpu:0, instead of where it ends first"},
          {"time", 0, "", "print where the time went, on standard error"}};
}

Result<Computed> Compute(Context& context, Client& client, Operation operation) {
  operation.OnDevice(context.device());
  auto options = context.Call<ComputeOptions>();
  options.timeline = context.time() || context.json();
  Computed computed{.arrays = client.ComputeAll(operation, options)};
  if (computed.arrays.empty()) {
    if (auto ended = client.Synchronize(context.Call()); !ended) return ended.error();
  } else if (options.timeline) {
    auto told = computed.arrays[0].Timeline(context.Call());
    if (!told) return told.error();
    computed.timeline = *told;
  }
  return computed;
}

Result<void> ComputeAndEmit(Context& context, OperationBuilder build) {
  auto client = context.Connect();
  if (!client) return client.error();
  UploadingSource source(context, **client);
  auto operation = build(context.line().positionals(), context.line(), source);
  if (!operation) return operation.error();
  auto computed = Compute(context, **client, *operation);
  if (!computed) return computed.error();
  return Emit(context, **client, computed->arrays, computed->timeline, source.upload_time());
}

Result<void> Emit(Context& context, Client& client, const std::vector<Array>& arrays,
                  const std::optional<Timeline>& timeline, std::chrono::nanoseconds upload_time) {
  const auto paths = context.line().Values("output");
  if (!paths.empty() && paths.size() != arrays.size()) {
    return Error{.code = Code::kInvalidArgument,
                 .message = "There are " + std::to_string(arrays.size()) + " results and " +
                            std::to_string(paths.size()) + " files (-o) for them"};
  }
  const bool data_on_stdout = std::find(paths.begin(), paths.end(), "-") != paths.end();
  if (data_on_stdout && context.json())
    return Error{.code = Code::kInvalidArgument,
                 .message = "--json and -o - both want standard output"};
  const auto start = std::chrono::steady_clock::now();
  std::vector<Fetched> all;
  for (size_t i = 0; i < arrays.size(); ++i) {
    auto fetched = FetchOne(context, client, arrays[i], paths.empty() ? "" : paths[i]);
    if (!fetched) return fetched.error();
    all.push_back(std::move(*fetched));
  }
  const auto phases = Phases(timeline, upload_time, std::chrono::steady_clock::now() - start);
  if (context.json()) {
    std::vector<Json> results;
    for (const auto& fetched : all) results.push_back(ToJson(fetched));
    std::vector<std::pair<std::string, Json>> seconds;
    for (const auto& [name, time] : phases)
      seconds.emplace_back(name, Json::Number(std::chrono::duration<double>(time).count()));
    std::printf("%s\n",
                Json::Object({{"results", Json::Array(results)},
                              {"device", timeline ? Json::String(timeline->device) : Json::Null()},
                              {"seconds", Json::Object(seconds)}})
                    .text()
                    .c_str());
  } else {
    for (const auto& fetched : all) {
      if (fetched.path.empty()) Print(fetched);
    }
  }
  if (context.time()) {
    std::string text = timeline ? timeline->device + ":" : "";
    for (const auto& [name, time] : phases) text += "  " + name + " " + FormatTime(time);
    std::fprintf(stderr, "%s\n", text.c_str());
  }
  return {};
}

}  // namespace stride::cli
