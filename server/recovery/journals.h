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

// All books of a daemon: a journal for each stripe of tenants, so that tenants of two stripes write
// at once, and a common one for what is no tenant's. Each is committed by itself, so that nothing
// in one may need what is in another. Two threads may use two journals; one is for one thread.
class Journals {
 public:
  // Empty ones, stored with the keeper, which must outlive them.
  static absl::StatusOr<std::unique_ptr<Journals>> Create(keeper::Keeper* keeper);
  // Those that an earlier process left among these descriptors, by name. NOT_FOUND: it left none.
  // DATA_LOSS: one is damaged or missing; none is believed then.
  static absl::StatusOr<std::unique_ptr<Journals>> Open(keeper::Keeper* keeper,
                                                        std::map<std::string, UniqueFd>* kept);
  // A descriptor of this name is a journal's.
  static bool IsFileName(std::string_view name);

  Journal& common() { return *common_; }
  Journal& of(int stripe) { return *stripes_[stripe]; }

  // What all of them have.
  void ForEach(const std::function<void(uint64_t key, std::string_view bytes)>& visit) const;
  // Wherever it is.
  void Erase(uint64_t key);

  // Daemons had one journal for all once. True: what that had was read, and is still in the common
  // one. DealOut gives each record to the stripe that is told for its key, and forgets those for
  // which it is kNobody.
  bool of_one() const { return of_one_; }
  static constexpr int kNobody = -1;
  absl::Status DealOut(const std::function<int(uint64_t key)>& stripe_of);

  // A successor finds none of them. Any thread.
  void LetGo();

 private:
  explicit Journals(keeper::Keeper* keeper) : keeper_(keeper) {}
  absl::Status CreateStripes();
  absl::Status Complete();

  keeper::Keeper* const keeper_;
  std::unique_ptr<Journal> common_;
  std::array<std::unique_ptr<Journal>, kNumStripes> stripes_;
  bool of_one_ = false;
};

}  // namespace stride::recovery
