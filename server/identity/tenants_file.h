#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/identity/tenant_table.h"

namespace stride::identity {

// The tenants file: `key = value` lines like the daemon's configuration, in sections. `#` starts a
// comment line.
//
//     [defaults]                        for tenants named below or nowhere; comes first
//     sessions = 100
//     [tenant physics]
//     array-bytes = 64GiB               also inline-bytes, region-bytes; KiB to TiB or plain bytes
//     operations = 10000                also jobs, sessions, functions, modules, programs
//     upload-bytes-per-second = 200MiB
//     weight = 2
//     token = sha256:HEX name=laptop expires=2027-06-30
//     certificate = uri:spiffe://lab/physics
//
// A file with any mistake is refused as a whole: INVALID_ARGUMENT names the line. The message never
// repeats the text after `token =`, since it may be the token itself.
absl::StatusOr<std::shared_ptr<const TenantTable>> ParseTenantsFile(std::string_view text);

// FAILED_PRECONDITION when any user may write the file.
absl::StatusOr<std::shared_ptr<const TenantTable>> ReadTenantsFile(const std::string& path);

}  // namespace stride::identity
