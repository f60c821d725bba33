#include "server/broker/sandbox.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace stride::broker {

std::vector<std::string> SandboxArguments(const SandboxPolicy& policy) {
  switch (policy.mode) {
    case SandboxPolicy::Mode::kOff:
      return {"--sandbox=off"};
    case SandboxPolicy::Mode::kTry:
      return {"--sandbox=try"};
    case SandboxPolicy::Mode::kRequire:
      break;
  }
  return {"--sandbox=require"};
}

std::vector<std::string> CompilerSandboxArguments(const SandboxPolicy& policy) {
  std::vector<std::string> arguments = SandboxArguments(policy);
  arguments.push_back(absl::StrCat("--memory=", policy.compile_memory_bytes));
  const int64_t seconds = std::max<int64_t>(
      1, absl::ToInt64Seconds(absl::Ceil(policy.compile_processor_time, absl::Seconds(1))));
  arguments.push_back(absl::StrCat("--processor-time=", seconds));
  return arguments;
}

bool KeepsStandardError(const SandboxPolicy& policy) {
#if defined(__SANITIZE_ADDRESS__) || defined(STRIDE_THREAD_SANITIZER)
  return true;
#else
  return policy.mode == SandboxPolicy::Mode::kOff;
#endif
}

std::string DescribeSandbox(const google::protobuf::RepeatedPtrField<wire::SandboxLayer>& layers) {
  std::vector<std::string> on, off;
  for (const wire::SandboxLayer& layer : layers) {
    if (layer.on()) {
      on.push_back(layer.name());
    } else {
      off.push_back(absl::StrCat(layer.name(), " (", layer.reason(), ")"));
    }
  }
  std::string text = "sandbox: ";
  absl::StrAppend(&text, on.empty() ? "none" : absl::StrJoin(on, ", "));
  if (!off.empty()) absl::StrAppend(&text, "; off: ", absl::StrJoin(off, ", "));
  return text;
}

}  // namespace stride::broker
