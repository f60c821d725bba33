#include "server/identity/tenants_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/base/unique_fd.h"

namespace stride::identity {
namespace {

constexpr int64_t kMaxFileBytes = 16 << 20;
constexpr int64_t kMaxBytes = int64_t{1} << 60;
constexpr int64_t kMaxCount = INT32_MAX;
constexpr double kMaxWeight = 1000;

absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

absl::Status Bad(absl::string_view what) { return absl::InvalidArgumentError(what); }

absl::StatusOr<int64_t> ParseBytes(absl::string_view text) {
  static constexpr std::pair<absl::string_view, int> kUnits[] = {
      {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  int shift = 0;
  for (const auto& [unit, bits] : kUnits) {
    if (absl::ConsumeSuffix(&text, unit)) shift = bits;
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &number) || number < 0 ||
      number > kMaxBytes >> shift)
    return Bad("must be bytes such as 1000000, 512MiB or 2TiB");
  return number << shift;
}

absl::StatusOr<int64_t> ParseCount(absl::string_view text) {
  int64_t number = 0;
  if (absl::SimpleAtoi(text, &number) && number >= 0 && number <= kMaxCount) return number;
  return Bad("must be a whole number");
}

absl::StatusOr<absl::Time> ParseExpiry(absl::string_view text) {
  absl::Time time;
  std::string error;
  if (absl::ParseTime("%Y-%m-%d", text, absl::UTCTimeZone(), &time, &error) ||
      absl::ParseTime(absl::RFC3339_full, text, &time, &error))
    return time;
  return Bad("expires must be a day such as 2027-06-30 or a time such as 2027-06-30T18:00:00Z");
}

class Reader {
 public:
  absl::Status Take(absl::string_view line) {
    if (line.front() == '[') return TakeSection(line);
    size_t equals = line.find('=');
    if (equals == absl::string_view::npos) return Bad("not of the form key = value");
    absl::string_view key = absl::StripAsciiWhitespace(line.substr(0, equals));
    absl::string_view value = absl::StripAsciiWhitespace(line.substr(equals + 1));
    if (!in_section_) return Bad("stands before the first [tenant NAME]");
    if (key == "token") return TakeToken(value);
    if (key == "certificate") return TakeCertificate(value);
    return TakeLimit(key, value);
  }
  std::shared_ptr<TenantTable> table() { return table_; }

 private:
  absl::Status TakeSection(absl::string_view line) {
    if (!absl::ConsumePrefix(&line, "[") || !absl::ConsumeSuffix(&line, "]"))
      return Bad("a section is [defaults] or [tenant NAME]");
    line = absl::StripAsciiWhitespace(line);
    if (line == "defaults") {
      if (in_section_) return Bad("[defaults] stands once, before all tenants");
      in_section_ = true;
      return absl::OkStatus();
    }
    if (!absl::ConsumePrefix(&line, "tenant "))
      return Bad("a section is [defaults] or [tenant NAME]");
    line = absl::StripAsciiWhitespace(line);
    if (!TenantTable::IsTenantName({line.data(), line.size()}))
      return Bad("a tenant's name must match [a-z0-9-]{1,63}");
    tenant_ = TenantId{std::string(line)};
    in_section_ = true;
    if (!table_->AddTenant(tenant_, table_->default_quota))
      return Bad("this tenant has a section already");
    return absl::OkStatus();
  }

  absl::Status TakeLimit(absl::string_view key, absl::string_view value) {
    Quota& quota = tenant_.value.empty() ? table_->default_quota : table_->QuotaOf(tenant_);
    static constexpr std::pair<absl::string_view, std::optional<int64_t> Quota::*> kBytes[] = {
        {"array-bytes", &Quota::array_bytes},
        {"inline-bytes", &Quota::inline_bytes},
        {"control-bytes", &Quota::control_bytes},
        {"region-bytes", &Quota::region_bytes},
        {"upload-bytes-per-second", &Quota::upload_bytes_per_second}};
    static constexpr std::pair<absl::string_view, std::optional<int64_t> Quota::*> kCounts[] = {
        {"operations", &Quota::operations}, {"jobs", &Quota::jobs}, {"sessions", &Quota::sessions}};
    for (const auto& [name, member] : kBytes) {
      if (name == key) return Set(ParseBytes(value), key, &(quota.*member));
    }
    for (const auto& [name, member] : kCounts) {
      if (name == key) return Set(ParseCount(value), key, &(quota.*member));
    }
    if (key != "weight") return Bad("unknown key");
    double weight = 0;
    if (!absl::SimpleAtod(value, &weight) || !(weight > 0 && weight <= kMaxWeight))
      return Bad(absl::StrCat("weight must be above 0 and at most ", kMaxWeight));
    quota.weight = weight;
    return absl::OkStatus();
  }

  static absl::Status Set(absl::StatusOr<int64_t> value, absl::string_view key,
                          std::optional<int64_t>* out) {
    if (!value.ok()) return Bad(absl::StrCat(key, " ", value.status().message()));
    // A rate of zero would block an upload forever.
    if (key == "upload-bytes-per-second" && *value == 0) return Bad(absl::StrCat(key, " is not 0"));
    *out = *value;
    return absl::OkStatus();
  }

  absl::Status TakeToken(absl::string_view value) {
    if (tenant_.value.empty()) return Bad("a token belongs to a [tenant NAME]");
    TenantTable::Token token;
    std::string name = "unnamed";
    bool first = true;
    for (absl::string_view part : absl::StrSplit(value, ' ', absl::SkipWhitespace())) {
      if (std::exchange(first, false)) {
        auto hash = ParseTokenHash({part.data(), part.size()});
        if (!hash.has_value())
          return Bad(
              "a token is given as sha256: and 64 lower-case hexadecimal digits of its "
              "hash; `stride token new` prints the line");
        token.hash = *hash;
      } else if (absl::ConsumePrefix(&part, "name=")) {
        if (!TenantTable::IsTenantName({part.data(), part.size()}))
          return Bad("a token's name must match [a-z0-9-]{1,63}");
        name = std::string(part);
      } else if (absl::ConsumePrefix(&part, "expires=")) {
        auto expires = ParseExpiry(part);
        if (!expires.ok()) return expires.status();
        token.expires = *expires;
      } else {
        return Bad("only name=NAME and expires=TIME may follow a token's hash");
      }
    }
    if (first) return Bad("a token needs its hash");
    token.principal = {tenant_, "token:" + name};
    if (!table_->AddToken(std::move(token))) return Bad("this token stands here twice");
    return absl::OkStatus();
  }

  absl::Status TakeCertificate(absl::string_view value) {
    if (tenant_.value.empty()) return Bad("a certificate belongs to a [tenant NAME]");
    bool good = false;
    for (absl::string_view kind : {"uri:", "dns:", "cn:"}) {
      good = good || (absl::StartsWith(value, kind) && value.size() > kind.size());
    }
    if (!good) return Bad("a certificate is named by uri:, dns: or cn: and that name");
    if (!table_->AddCertificate(std::string(value), tenant_))
      return Bad("this certificate's name stands here twice");
    return absl::OkStatus();
  }

  std::shared_ptr<TenantTable> table_ = std::make_shared<TenantTable>();
  TenantId tenant_;  // empty: in [defaults], or before any section
  bool in_section_ = false;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const TenantTable>> ParseTenantsFile(std::string_view text) {
  Reader reader;
  int number = 0;
  for (absl::string_view raw : absl::StrSplit(ToAbsl(text), '\n')) {
    ++number;
    absl::string_view line = absl::StripAsciiWhitespace(raw);
    if (line.empty() || line.front() == '#') continue;
    if (absl::Status status = reader.Take(line); !status.ok())
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", status.message()));
  }
  return reader.table();
}

absl::StatusOr<std::shared_ptr<const TenantTable>> ReadTenantsFile(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (!fd.valid() || fstat(fd.get(), &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read the tenants file ", path));
  if ((info.st_mode & S_IWOTH) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "any user may write the tenants file, and so become any tenant: ", "chmod o-w ", path));
  }
  std::string text;
  char buffer[65536];
  ssize_t got = 0;
  while ((got = read(fd.get(), buffer, sizeof(buffer))) > 0) {
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > kMaxFileBytes)
      return absl::InvalidArgumentError(absl::StrCat(path, ": larger than a tenants file may be"));
  }
  if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("reading the tenants file ", path));
  auto table = ParseTenantsFile(text);
  if (table.ok()) return table;
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", table.status().message()));
}

}  // namespace stride::identity
