#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "stride/v1/program_service.pb.h"

namespace stride::ops {

bool CallsPrograms(const v1::Program& program);

// The program with the operations of those that it calls in the place of the calls, under handles
// of its own. `find` gives a program by its resource name, which calls none itself. Errors have
// paths within the Program. Pure.
absl::StatusOr<v1::Program> InlinePrograms(
    const v1::Program& program,
    absl::FunctionRef<absl::StatusOr<const v1::Program*>(const std::string&)> find);

}  // namespace stride::ops
