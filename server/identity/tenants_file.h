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
//     [defaults]                          tenants named below or elsewhere, before any of them
//     sessions = 100
//     [tenant physics]
//     array-bytes = 64GiB                 also inline-bytes, region-bytes; KiB, MiB, GiB, TiB or
//     plain bytes operations = 10000                  also jobs, sessions upload-bytes-per-second =
//     200MiB weight = 2 token = sha256:HEX name=laptop expires=2027-06-30 certificate =
//     uri:spiffe://lab/physics
//
// A file with any mistake is refused as a whole: INVALID_ARGUMENT that tells the line and never
// repeats what stands behind `token =`, since somebody may have put the token itself there.
absl::StatusOr<std::shared_ptr<const TenantTable>> ParseTenantsFile(std::string_view text);

// FAILED_PRECONDITION when everybody may write it.
absl::StatusOr<std::shared_ptr<const TenantTable>> ReadTenantsFile(const std::string& path);

}  // namespace stride::identity
