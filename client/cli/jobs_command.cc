#include <algorithm>
#include <cstdio>

#include "client/cli/array_json.h"
#include "client/cli/build_operation.h"
#include "client/cli/command.h"
#include "client/cli/progress.h"
#include "client/cli/suggest.h"

namespace stride::cli {
namespace {

std::string FullJobName(const std::string& text) {
  return text.find('/') == std::string::npos ? "tenants/default/jobs/" + text : text;
}

Json ToJson(const Job& job) {
  std::vector<Json> results, timelines;
  for (const auto& result : job.results) results.push_back(cli::ToJson(result));
  for (const auto& timeline : job.timelines) {
    const auto seconds = [](std::chrono::nanoseconds time) {
      return Json::Number(std::chrono::duration<double>(time).count());
    };
    timelines.push_back(Json::Object({{"device", Json::String(timeline.device)},
                                      {"queue", seconds(timeline.queue)},
                                      {"compile", seconds(timeline.compile)},
                                      {"upload", seconds(timeline.upload)},
                                      {"run", seconds(timeline.run)}}));
  }
  return Json::Object({{"name", Json::String(job.name)},
                       {"state", Json::String(Name(job.state))},
                       {"label", Json::String(job.label)},
                       {"error", job.error ? Json::String(job.error->ToString()) : Json::Null()},
                       {"timelines", Json::Array(timelines)},
                       {"results", Json::Array(results)}});
}

void Print(Context& context, const Job& job) {
  if (context.json()) {
    std::printf("%s\n", ToJson(job).text().c_str());
    return;
  }
  std::printf("%s %s%s%s\n", job.name.c_str(), Name(job.state), job.label.empty() ? "" : "  ",
              job.label.c_str());
  for (const auto& timeline : job.timelines) {
    std::printf("  %s: queue %s", timeline.device.c_str(), FormatTime(timeline.queue).c_str());
    if (timeline.compile.count() > 0)
      std::printf(" (compiling %s)", FormatTime(timeline.compile).c_str());
    if (timeline.upload.count() > 0)
      std::printf(", moving in %s", FormatTime(timeline.upload).c_str());
    std::printf(", run %s\n", FormatTime(timeline.run).c_str());
  }
  for (const auto& result : job.results)
    std::printf("  %s %s\n", result.name.c_str(), ToString(result.spec).c_str());
  if (job.error) std::printf("  %s\n", job.error->ToString().c_str());
}

Result<Operation> BuildJobOperation(const std::vector<std::string>& words,
                                    const CommandLine& line) {
  NamedSource source;
  const std::span<const std::string> arguments = std::span(words).subspan(1);
  if (OperationBuilder build = FindBuilder(words[0])) return build(arguments, line, source);
  return Error{
      .code = Code::kInvalidArgument,
      .message = "A job is a ufunc, a reduce, a matmul or an array operation such as sort, not '" +
                 words[0] + "'"};
}

Result<void> Watch(Context& context, Client& client, const std::string& name) {
  Job last;
  auto watched = client.WatchJob(
      name,
      [&](const Job& job) {
        last = job;
        Print(context, job);
        std::fflush(stdout);
        return true;
      },
      context.Call());
  if (!watched) return watched;
  if (last.error) return *last.error;
  return {};
}

Result<void> Submit(Context& context, Client& client, const std::vector<std::string>& words) {
  if (words.empty()) return UsageError(JobsCommand(), "The program to run is missing");
  auto operation = BuildJobOperation(words, context.line());
  if (!operation) return operation.error();
  operation->OnDevice(context.device());
  const auto targets = context.line().Values("to");
  if (targets.empty())
    return UsageError(JobsCommand(), "--to NAME is missing: where a job's result goes");
  for (const auto& name : targets) operation->ToName(FullArrayName(name));
  JobSpec spec{.operations = {*operation},
               .label = context.line().Value("label").value_or(""),
               .id = context.line().Value("id").value_or(""),
               .request_id = context.line().Value("request-id").value_or(""),
               .validate_only = context.line().Has("validate-only")};
  if (const auto limit = context.line().Value("limit")) {
    const auto time = ParseTime(*limit);
    if (!time)
      return UsageError(JobsCommand(), "--limit " + *limit + " is not a time such as 30 or 2m");
    spec.timeout = *time;
  }
  auto job = client.CreateJob(spec, context.Call());
  if (!job) return job.error();
  if (context.line().Has("wait")) return Watch(context, client, job->name);
  if (context.json()) {
    Print(context, *job);
  } else {
    std::printf("%s\n", job->name.c_str());
  }
  return {};
}

Result<void> List(Context& context, Client& client) {
  auto jobs = client.ListJobs(context.Call());
  if (!jobs) return jobs.error();
  if (context.json()) {
    std::vector<Json> items;
    for (const auto& job : *jobs) items.push_back(ToJson(job));
    std::printf("%s\n", Json::Array(items).text().c_str());
    return {};
  }
  for (const auto& job : *jobs)
    std::printf("%-48s %-10s %s\n", job.name.c_str(), Name(job.state), job.label.c_str());
  return {};
}

Result<void> One(Context& context, const Result<Job>& job) {
  if (!job) return job.error();
  Print(context, *job);
  return {};
}

Result<void> Run(Context& context) {
  const auto& positionals = context.line().positionals();
  const std::string action = positionals.empty() ? "list" : positionals[0];
  const std::vector<std::string> rest(positionals.begin() + !positionals.empty(),
                                      positionals.end());
  const std::vector<std::string> actions = {"submit", "list", "get", "watch", "cancel", "delete"};
  if (std::find(actions.begin(), actions.end(), action) == actions.end()) {
    const std::string near = Suggest(action, actions);
    return UsageError(JobsCommand(), "No jobs action '" + action + "'" +
                                         (near.empty() ? "" : ". Did you mean " + near + "?"));
  }
  const bool takes_name = action != "submit" && action != "list";
  if (takes_name && rest.size() != 1)
    return UsageError(JobsCommand(), "jobs " + action + " takes one job's name");
  auto connected = context.Connect(/*keeps_state=*/true);
  if (!connected) return connected.error();
  Client& client = **connected;
  if (action == "submit") return Submit(context, client, rest);
  if (action == "list") return List(context, client);
  const std::string name = FullJobName(rest[0]);
  if (action == "get") return One(context, client.GetJob(name, context.Call()));
  if (action == "watch") return Watch(context, client, name);
  if (action == "cancel") return One(context, client.CancelJob(name, context.Call()));
  return client.DeleteJob(name, context.Call());
}

std::vector<OptionSpec> Options() {
  return JoinOptions(
      {{{"to", 0, "NAME", "submit: the array to create; repeat it for several results"},
        {"label", 0, "TEXT", "submit: free text to find the job again"},
        {"id", 0, "ID", "submit: the job's name (default: the daemon makes one)"},
        {"request-id", 0, "UUID", "submit: the same one again gives the first job back"},
        {"limit", 0, "TIME", "submit: longest time from acceptance to end"},
        {"validate-only", 0, "", "submit: check everything, run nothing"},
        {"wait", 0, "", "submit: watch it to its end"},
        {"device", 0, "DEVICE", "submit: run here, such as cpu:0"}},
       BuilderOptionSpecs()});
}

}  // namespace

const Command& JobsCommand() {
  static const Command kCommand = {
      .name = "jobs",
      .summary = "work that outlives this command: submit, list, get, watch, cancel, delete",
      .usage =
          "[list] | submit ufunc|reduce|matmul|sort|... ARGUMENT... --to NAME | "
          "get|watch|cancel|delete JOB",
      .details =
          "Jobs work on arrays that the daemon keeps, written @NAME, and on numbers:\n"
          "  stride put x.npy && stride jobs submit ufunc 'sqrt(x) + 1' x=@x --to y --wait && "
          "stride get y -o y.npy",
      .options = Options(),
      .run = Run};
  return kCommand;
}

}  // namespace stride::cli
