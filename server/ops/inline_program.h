#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "stride/v1/program_service.pb.h"

namespace stride::ops {

bool CallsPrograms(const v1::Program& program);

// Replaces calls of programs by the operations of the called programs, under new handles. `find`
// returns a program by its resource name; such a program contains no calls. Errors have paths
// within the Program. Pure.
absl::StatusOr<v1::Program> InlinePrograms(
    const v1::Program& program,
    absl::FunctionRef<absl::StatusOr<const v1::Program*>(const std::string&)> find);

}  // namespace stride::ops
