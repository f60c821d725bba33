#include "server/identity/identity.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/environment.h"
#include "server/identity/tenants_file.h"

namespace stride::identity {

absl::StatusOr<std::unique_ptr<Identity>> Identity::Open(std::string path, Options options) {
  std::unique_ptr<Identity> identity(new Identity(std::move(path), std::move(options)));
  auto table = ReadTenantsFile(identity->path_);
  if (!table.ok()) return table.status();
  identity->Use(*std::move(table));
  identity->watch_.Start(identity->options_.interval, [self = identity.get()] {
    absl::MutexLock lock(&self->reading_);
    self->ReloadNow().IgnoreError();
  });
  return identity;
}

std::shared_ptr<const TenantTable> Identity::table() const {
  absl::MutexLock lock(&mutex_);
  return table_;
}

std::optional<Principal> Identity::FromToken(std::string_view token) const {
  return table()->FindToken(token, WallNow());
}

std::optional<Principal> Identity::FromCertificate(const std::vector<std::string>& names) const {
  return table()->FindCertificate(names);
}

void Identity::Follow(std::function<void(const TenantTable&)> changed) {
  absl::MutexLock lock(&reading_);
  changed_ = std::move(changed);
  if (changed_) changed_(*table());
}

absl::Status Identity::Reload() {
  absl::MutexLock lock(&reading_);
  watch_.BeginRead();
  return ReloadNow();
}

absl::Status Identity::ReloadNow() {
  absl::Status status = ReadAgain();
  if (!status.ok()) {
    options_.log(absl::StrCat("the tenants file is refused, what was read before stays in force: ",
                              status.message()));
    return status;
  }
  auto now = table();
  options_.log(absl::StrCat("tenants read: ", now->quotas().size(), " tenants, ", now->num_tokens(),
                            " tokens, ", now->num_certificates(), " certificate names"));
  if (changed_) changed_(*now);
  return absl::OkStatus();
}

absl::Status Identity::ReadAgain() {
  auto read = ReadTenantsFile(path_);
  if (!read.ok()) return read.status();
  if (!watch_.Unchanged()) {
    return absl::UnavailableError(
        absl::StrCat(path_, " changed while it was read; it is read again once it is whole"));
  }
  if ((*read)->empty() && !table()->empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_,
                     " names no tenant, as a file that is being written does. To refuse "
                     "every caller, leave one [tenant NAME] without a token in it"));
  }
  Use(*std::move(read));
  return absl::OkStatus();
}

void Identity::Use(std::shared_ptr<const TenantTable> table) {
  absl::MutexLock lock(&mutex_);
  table_ = std::move(table);
}

}  // namespace stride::identity
