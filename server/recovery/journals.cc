#include "server/recovery/journals.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/recovery/key.h"

namespace stride::recovery {
namespace {

constexpr char kCommonName[] = "journal";

std::string NameOf(int partition) { return absl::StrCat(kCommonName, "-s", partition); }

// A record of the common journal, set by Complete. Its id is the number of the others.
constexpr uint64_t kStripesKey = Key(Kind::kStripes, kNumTenantPartitions);

absl::StatusOr<std::unique_ptr<Journal>> OpenNamed(fd_store::FdStore* fd_store,
                                                   const std::string& name,
                                                   std::map<std::string, UniqueFd>* kept) {
  UniqueFd files[2];
  for (int i = 0; i < 2; ++i) {
    auto found = kept->find(Journal::FileName(name, i));
    if (found != kept->end()) files[i] = std::move(found->second);
  }
  return Journal::Open(fd_store, name, std::move(files[0]), std::move(files[1]));
}

}  // namespace

bool Journals::IsFileName(std::string_view name) {
  return absl::StartsWith(absl::string_view(name.data(), name.size()),
                          absl::StrCat(kCommonName, "-"));
}

absl::StatusOr<std::unique_ptr<Journals>> Journals::Create(fd_store::FdStore* fd_store) {
  std::unique_ptr<Journals> journals(new Journals(fd_store));
  auto common = Journal::Create(fd_store, kCommonName);
  if (!common.ok()) return common.status();
  journals->common_ = *std::move(common);
  for (int partition = 0; partition < kNumTenantPartitions; ++partition) {
    auto journal = Journal::Create(fd_store, NameOf(partition));
    if (!journal.ok()) return journal.status();
    journals->partitions_[partition] = *std::move(journal);
  }
  return journals;
}

absl::Status Journals::Complete() {
  if (!common_->Has(kStripesKey)) common_->Set(kStripesKey, "");
  return common_->Commit();
}

absl::StatusOr<std::unique_ptr<Journals>> Journals::Open(fd_store::FdStore* fd_store,
                                                         std::map<std::string, UniqueFd>* kept) {
  if (kept->count(Journal::FileName(kCommonName, 0)) == 0 &&
      kept->count(Journal::FileName(kCommonName, 1)) == 0)
    return absl::NotFoundError("");
  std::unique_ptr<Journals> journals(new Journals(fd_store));
  auto common = OpenNamed(fd_store, kCommonName, kept);
  if (!common.ok()) return common.status();
  journals->common_ = *std::move(common);
  bool complete = false;
  absl::Status status;
  journals->common_->ForEach([&](uint64_t key, std::string_view) {
    complete = complete || key == kStripesKey;
    if (KindOf(key) == Kind::kStripes && key != kStripesKey)
      status = absl::DataLossError(
          absl::StrCat("the journal is of a version with ", IdOf(key), " stripes"));
  });
  if (!status.ok()) return status;
  if (!complete) return absl::NotFoundError("");
  for (int partition = 0; partition < kNumTenantPartitions; ++partition) {
    auto journal = OpenNamed(fd_store, NameOf(partition), kept);
    if (!journal.ok()) return journal.status();
    journals->partitions_[partition] = *std::move(journal);
  }
  return journals;
}

void Journals::ForEach(const std::function<void(uint64_t, std::string_view)>& visit) const {
  common_->ForEach([&](uint64_t key, std::string_view bytes) {
    if (key != kStripesKey) visit(key, bytes);
  });
  for (const auto& journal : partitions_) journal->ForEach(visit);
}

void Journals::Erase(uint64_t key) {
  for (const auto& journal : partitions_) journal->Erase(key);
}

void Journals::LetGo() {
  common_->LetGo();
  for (const auto& journal : partitions_) journal->LetGo();
}

}  // namespace stride::recovery
