#include "server/identity/identity.h"

#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/surroundings.h"
#include "server/identity/tenants_file.h"

namespace stride::identity {

absl::StatusOr<std::unique_ptr<Identity>> Identity::Open(std::string path, Options options) {
  std::unique_ptr<Identity> identity(new Identity(std::move(path), std::move(options)));
  {
    absl::MutexLock lock(&identity->reading_);
    if (absl::Status status = identity->Read(); !status.ok()) return status;
  }
  identity->Watch();
  return identity;
}

Identity::Stamp Identity::StampOf(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
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
  absl::Status status = Read();
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

absl::Status Identity::Read() {
  // First: a change during the reading shows at the next look.
  stamp_ = StampOf(path_);
  auto table = ReadTenantsFile(path_);
  if (!table.ok()) return table.status();
  absl::MutexLock lock(&mutex_);
  table_ = *std::move(table);
  return absl::OkStatus();
}

void Identity::Watch() {
  timer_.At(Now() + options_.interval, [this] {
    bool same = false;
    {
      absl::MutexLock lock(&reading_);
      same = StampOf(path_) == stamp_;
    }
    if (!same) Reload().IgnoreError();
    Watch();
  });
}

}  // namespace stride::identity
