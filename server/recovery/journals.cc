#include "server/recovery/journals.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/base/crash_point.h"
#include "server/recovery/key.h"

namespace stride::recovery {
namespace {

// The name of the only journal in early versions.
constexpr char kCommonName[] = "journal";

std::string NameOf(int stripe) { return absl::StrCat(kCommonName, "-s", stripe); }

// Key in the common journal: set once the journals of all partitions are stored. Its id is their
// number.
constexpr uint64_t kStripesKey = Key(Kind::kStripes, kNumStripes);

absl::StatusOr<std::unique_ptr<Journal>> OpenNamed(keeper::Keeper* keeper, const std::string& name,
                                                   std::map<std::string, UniqueFd>* kept) {
  UniqueFd files[2];
  for (int i = 0; i < 2; ++i) {
    auto found = kept->find(Journal::FileName(name, i));
    if (found != kept->end()) files[i] = std::move(found->second);
  }
  return Journal::Open(keeper, name, std::move(files[0]), std::move(files[1]));
}

}  // namespace

bool Journals::IsFileName(std::string_view name) {
  return absl::StartsWith(absl::string_view(name.data(), name.size()),
                          absl::StrCat(kCommonName, "-"));
}

absl::StatusOr<std::unique_ptr<Journals>> Journals::Create(keeper::Keeper* keeper) {
  std::unique_ptr<Journals> journals(new Journals(keeper));
  auto common = Journal::Create(keeper, kCommonName);
  if (!common.ok()) return common.status();
  journals->common_ = *std::move(common);
  if (absl::Status status = journals->CreateStripes(); !status.ok()) return status;
  if (absl::Status status = journals->Complete(); !status.ok()) return status;
  return journals;
}

absl::Status Journals::CreateStripes() {
  for (int stripe = 0; stripe < kNumStripes; ++stripe) {
    auto journal = Journal::Create(keeper_, NameOf(stripe));
    if (!journal.ok()) return journal.status();
    stripes_[stripe] = *std::move(journal);
  }
  return absl::OkStatus();
}

absl::Status Journals::Complete() {
  common_->Set(kStripesKey, "");
  return common_->Commit();
}

absl::StatusOr<std::unique_ptr<Journals>> Journals::Open(keeper::Keeper* keeper,
                                                         std::map<std::string, UniqueFd>* kept) {
  if (kept->count(Journal::FileName(kCommonName, 0)) == 0 &&
      kept->count(Journal::FileName(kCommonName, 1)) == 0)
    return absl::NotFoundError("");
  std::unique_ptr<Journals> journals(new Journals(keeper));
  auto common = OpenNamed(keeper, kCommonName, kept);
  if (!common.ok()) return common.status();
  journals->common_ = *std::move(common);
  journals->of_one_ = true;
  absl::Status status;
  journals->common_->ForEach([&](uint64_t key, std::string_view) {
    if (KindOf(key) != Kind::kStripes) return;
    journals->of_one_ = false;
    if (key != kStripesKey)
      status = absl::DataLossError(
          absl::StrCat("the journal is of a version with ", IdOf(key), " stripes"));
  });
  if (!status.ok()) return status;
  if (journals->of_one_) {
    if (status = journals->CreateStripes(); !status.ok()) return status;
    return journals;
  }
  for (int stripe = 0; stripe < kNumStripes; ++stripe) {
    auto journal = OpenNamed(keeper, NameOf(stripe), kept);
    if (!journal.ok()) return journal.status();
    journals->stripes_[stripe] = *std::move(journal);
  }
  return journals;
}

void Journals::ForEach(const std::function<void(uint64_t, std::string_view)>& visit) const {
  common_->ForEach([&](uint64_t key, std::string_view bytes) {
    if (key != kStripesKey) visit(key, bytes);
  });
  for (const auto& journal : stripes_) journal->ForEach(visit);
}

void Journals::Erase(uint64_t key) {
  for (const auto& journal : stripes_) journal->Erase(key);
}

absl::Status Journals::DealOut(const std::function<int(uint64_t)>& stripe_of) {
  std::vector<uint64_t> keys;
  common_->ForEach([&](uint64_t key, std::string_view bytes) {
    keys.push_back(key);
    if (const int stripe = stripe_of(key); stripe != kNobody) stripes_[stripe]->Set(key, bytes);
  });
  for (const auto& journal : stripes_) {
    if (absl::Status status = journal->Commit(); !status.ok()) return status;
  }
  STRIDE_CRASH_POINT("journals.dealt_out");
  // Up to here the common journal has all records; from here on none.
  for (uint64_t key : keys) common_->Erase(key);
  if (absl::Status status = Complete(); !status.ok()) return status;
  of_one_ = false;
  return absl::OkStatus();
}

void Journals::LetGo() {
  common_->LetGo();
  for (const auto& journal : stripes_) journal->LetGo();
}

}  // namespace stride::recovery
