#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "google/protobuf/repeated_field.h"

namespace stride::ops {

// Checks that KernelService.CreateModule documents every option. OPTION_NOT_ALLOWED at `field`[i].
absl::Status CheckCompilerOptions(const google::protobuf::RepeatedPtrField<std::string>& options,
                                  std::string_view field);

}  // namespace stride::ops
