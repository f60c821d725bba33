#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/main/config.h"

namespace stride {

// One key of the file, and the flag with the same name.
struct Option {
  std::string name;
  std::string value_name;  // empty: a switch, `true` or `false`
  std::string help;
  std::function<absl::Status(std::string_view value, Config* config)> set;
};

const std::vector<Option>& Options();

// nullptr when there is none.
const Option* FindOption(std::string_view name);

// `[COUNTx]THREADS,...`: `2x1` is two devices of one thread, `4,0` one of four threads and one of
// all cores.
absl::StatusOr<std::vector<int>> ParseCpuDevices(std::string_view text);

}  // namespace stride
