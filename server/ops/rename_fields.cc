#include "server/ops/rename_fields.h"

#include <optional>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"

namespace stride::ops {
namespace {

constexpr char kBadRequest[] = "type.googleapis.com/google.rpc.BadRequest";

}  // namespace

absl::Status RenameFields(const absl::Status& status, const FieldNames& names) {
  absl::optional<absl::Cord> payload = status.GetPayload(kBadRequest);
  google::rpc::BadRequest request;
  if (!payload || !request.ParseFromString(std::string(*payload))) return status;
  for (auto& violation : *request.mutable_field_violations()) {
    for (const auto& [from, to] : names) {
      if (violation.field().compare(0, from.size(), from) != 0) continue;
      violation.set_field(std::string(to) + violation.field().substr(from.size()));
      break;
    }
  }
  absl::Status renamed = status;
  renamed.SetPayload(kBadRequest, absl::Cord(request.SerializeAsString()));
  return renamed;
}

}  // namespace stride::ops
