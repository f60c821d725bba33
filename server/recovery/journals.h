#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/stripe.h"
#include "server/base/unique_fd.h"
#include "server/keeper/keeper.h"
#include "server/recovery/journal.h"

namespace stride::recovery {

// All journals of a daemon: one for each stripe of tenants, so that tenants of two stripes write
// concurrently, and a common one for records of no tenant. Each is committed by itself, so no
// record may need one of another journal. Two threads may use two journals; a journal is for one
// thread.
class Journals {
 public:
  // Empty ones, stored with the keeper, which must outlive them.
  static absl::StatusOr<std::unique_ptr<Journals>> Create(keeper::Keeper* keeper);
  // Opens the journals that an earlier process left among these descriptors, by name. NOT_FOUND: it
  // left none, or died before Create returned. DATA_LOSS: one is damaged or missing, so none is
  // used.
  static absl::StatusOr<std::unique_ptr<Journals>> Open(keeper::Keeper* keeper,
                                                        std::map<std::string, UniqueFd>* kept);
  // A descriptor of this name is a journal's.
  static bool IsFileName(std::string_view name);

  Journal& common() { return *common_; }
  Journal& of(int stripe) { return *stripes_[stripe]; }

  // Visits the records of all journals.
  void ForEach(const std::function<void(uint64_t key, std::string_view bytes)>& visit) const;
  // Erases the record from the stripe that has it.
  void Erase(uint64_t key);

  // Removes all journals from the keeper, so that a later process finds none. Any thread.
  void LetGo();

 private:
  explicit Journals(keeper::Keeper* keeper) : keeper_(keeper) {}

  keeper::Keeper* const keeper_;
  std::unique_ptr<Journal> common_;
  std::array<std::unique_ptr<Journal>, kNumStripes> stripes_;
};

}  // namespace stride::recovery
