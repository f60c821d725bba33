#include "server/recovery/journals.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/recovery/key.h"

namespace stride::recovery {
namespace {

constexpr char kCommonName[] = "journal";

std::string NameOf(int stripe) { return absl::StrCat(kCommonName, "-s", stripe); }

// A record of the common journal, set once all journals are stored. Its id is their number.
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
  for (int stripe = 0; stripe < kNumStripes; ++stripe) {
    auto journal = Journal::Create(keeper, NameOf(stripe));
    if (!journal.ok()) return journal.status();
    journals->stripes_[stripe] = *std::move(journal);
  }
  journals->common_->Set(kStripesKey, "");
  if (absl::Status status = journals->common_->Commit(); !status.ok()) return status;
  return journals;
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
  bool complete = false, empty = true;
  absl::Status status;
  journals->common_->ForEach([&](uint64_t key, std::string_view) {
    empty = false;
    complete = complete || key == kStripesKey;
    if (KindOf(key) == Kind::kStripes && key != kStripesKey)
      status = absl::DataLossError(
          absl::StrCat("the journal is of a version with ", IdOf(key), " stripes"));
  });
  if (!status.ok()) return status;
  // Create writes kStripesKey before any other record.
  if (empty) return absl::NotFoundError("");
  if (!complete) return absl::DataLossError("the journal does not name the number of its stripes");
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

void Journals::LetGo() {
  common_->LetGo();
  for (const auto& journal : stripes_) journal->LetGo();
}

}  // namespace stride::recovery
