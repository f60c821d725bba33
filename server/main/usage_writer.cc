#include "server/main/usage_writer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/environment.h"
#include "server/recovery/usage.pb.h"
#include "server/session/array_description.h"

namespace stride {
namespace {

constexpr std::string_view kTenants = "tenants/";
// The time between two writes is at least this multiple of a write's time, since a disk may be
// slow.
constexpr double kCostFactor = 20;
// Far above a tenant's possible use; sums of such numbers do not overflow.
constexpr int64_t kMost = int64_t{1} << 61;

bool IsCount(int64_t value) { return value >= 0 && value <= kMost; }
bool IsCount(double value) { return std::isfinite(value) && value >= 0; }

bool AreCounts(const v1::Usage& usage) {
  auto is_count = [](const v1::DeviceUsage& device) {
    return IsCount(device.device_seconds()) && IsCount(device.operations());
  };
  return IsCount(usage.device_seconds()) && IsCount(usage.upload_bytes()) &&
         IsCount(usage.download_bytes()) && IsCount(usage.array_byte_seconds()) &&
         IsCount(usage.operations()) && IsCount(usage.operations_failed()) &&
         IsCount(usage.jobs()) &&
         std::all_of(usage.devices().begin(), usage.devices().end(), is_count);
}

bool IsTenant(std::string_view name) {
  return name.size() > kTenants.size() && name.substr(0, kTenants.size()) == kTenants;
}

absl::Time TimeOf(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

std::string Text(const absl::Status& status) { return std::string(status.message()); }

}  // namespace

std::unique_ptr<UsageWriter> UsageWriter::Start(Options options,
                                                session::TenantAccounts* accounts) {
  auto file = durable::UsageFile::Open(options.folder);
  if (!file.ok()) {
    options.log(absl::StrCat("tenants' usage is not kept in the state folder and counts from 0: ",
                             Text(file.status())));
    return nullptr;
  }
  std::unique_ptr<UsageWriter> writer(
      new UsageWriter(std::move(options), *std::move(file), accounts));
  if (!writer->Load()) return nullptr;
  writer->thread_ = std::thread([writer = writer.get()] { writer->Run(); });
  return writer;
}

bool UsageWriter::Load() {
  auto content = file_->Read();
  if (absl::IsNotFound(content.status())) return true;
  const absl::Status status = content.ok() ? AddEarlier(*content) : content.status();
  if (status.ok()) return true;
  auto aside = file_->SetAside();
  if (aside.ok()) {
    options_.log(absl::StrCat("the file of tenants' usage, ", file_->path(),
                              ", cannot be used, and usage counts from 0. The file is now ", *aside,
                              ": ", Text(status)));
    return true;
  }
  options_.log(absl::StrCat("the file of tenants' usage, ", file_->path(),
                            ", cannot be used. Usage counts from 0 and is not kept: move the file "
                            "away and start again: ",
                            Text(status), "; ", Text(aside.status())));
  return false;
}

// All or nothing.
absl::Status UsageWriter::AddEarlier(const std::string& content) {
  recovery::UsageRecords records;
  if (!records.ParseFromString(content)) return absl::DataLossError("its content is malformed");
  std::map<std::string, Entry> entries;
  for (v1::Usage& usage : *records.mutable_tenants()) {
    usage.clear_quotas();
    if (!IsTenant(usage.tenant()) || !AreCounts(usage))
      return absl::DataLossError("it has counts that cannot be");
    const absl::Time changed = TimeOf(usage.time());
    usage.clear_time();
    if (!entries.try_emplace(usage.tenant(), Entry{usage.SerializeAsString(), changed}).second)
      return absl::DataLossError("it has a tenant twice");
  }
  for (v1::Usage& usage : *records.mutable_tenants()) {
    const TenantId tenant{usage.tenant().substr(kTenants.size())};
    accounts_->AddEarlier(tenant, std::move(usage));
  }
  entries_ = std::move(entries);
  return absl::OkStatus();
}

UsageWriter::~UsageWriter() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (!thread_.joinable()) return;
  thread_.join();
  Write();
}

void UsageWriter::Run() {
  absl::Duration wait = options_.interval;
  absl::MutexLock lock(&mutex_);
  while (!Await(mutex_, absl::Condition(&stopping_), Now() + wait)) {
    mutex_.Unlock();
    const SteadyTime begin = Now();
    Write();
    wait = std::max(options_.interval, (Now() - begin) * kCostFactor);
    mutex_.Lock();
  }
}

void UsageWriter::Write() {
  unwritten_ = Look() || unwritten_;
  if (!unwritten_) return;
  const absl::Status status = file_->Write(Content());
  unwritten_ = !status.ok();
  if (!status.ok() && !failing_) {
    options_.log(absl::StrCat("tenants' usage cannot be written to ", file_->path(),
                              ", and it is tried again: ", Text(status)));
  }
  if (status.ok() && failing_)
    options_.log(absl::StrCat("tenants' usage is written to ", file_->path(), " again"));
  failing_ = !status.ok();
}

// Whether anything has changed since the last check.
bool UsageWriter::Look() {
  bool changed = false;
  const absl::Time now = WallNow();
  for (const v1::Usage& usage : accounts_->Totals()) {
    std::string counts = usage.SerializeAsString();
    Entry& entry = entries_[usage.tenant()];
    if (entry.counts == counts) continue;
    entry = {std::move(counts), now};
    changed = true;
  }
  return changed;
}

std::string UsageWriter::Content() {
  std::vector<const Entry*> kept;
  for (const auto& [tenant, entry] : entries_) kept.push_back(&entry);
  const bool too_many = kept.size() > options_.max_tenants;
  if (too_many) {
    std::stable_sort(kept.begin(), kept.end(), [](const Entry* one, const Entry* other) {
      return one->changed > other->changed;
    });
    kept.resize(options_.max_tenants);
  }
  if (too_many && !too_many_) {
    options_.log(absl::StrCat("more than ", options_.max_tenants, " tenants have usage: ",
                              file_->path(), " keeps the tenants that used something last"));
  }
  too_many_ = too_many;
  recovery::UsageRecords records;
  for (const Entry* entry : kept) {
    v1::Usage* usage = records.add_tenants();
    usage->ParseFromString(entry->counts);
    session::SetTimestamp(entry->changed, usage->mutable_time());
  }
  return records.SerializeAsString();
}

}  // namespace stride
