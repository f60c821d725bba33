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

// All journals of a daemon: one per tenant partition, so that tenants of two partitions write
// concurrently, and a common one for records without a tenant. Each is committed by itself, so no
// record may depend on one in another journal. Two threads may use two journals at once; each
// journal is for one thread at a time.
class Journals {
 public:
  // Creates empty journals and stores them with `keeper`, which must outlive them.
  static absl::StatusOr<std::unique_ptr<Journals>> Create(keeper::Keeper* keeper);
  // Opens the journals that an earlier process left among these descriptors, by name. NOT_FOUND:
  // there are none. DATA_LOSS: one is damaged or missing; no record is used then.
  static absl::StatusOr<std::unique_ptr<Journals>> Open(keeper::Keeper* keeper,
                                                        std::map<std::string, UniqueFd>* kept);
  // Whether a descriptor of this name is a journal file.
  static bool IsFileName(std::string_view name);

  Journal& common() { return *common_; }
  Journal& of(int stripe) { return *stripes_[stripe]; }

  // Visits the records of all journals.
  void ForEach(const std::function<void(uint64_t key, std::string_view bytes)>& visit) const;
  // Erases the key in the journal of each partition.
  void Erase(uint64_t key);

  // True: an early version with a single journal left its records in the common one. DealOut moves
  // each to the partition that `stripe_of` returns for its key, and drops it for kNobody.
  bool of_one() const { return of_one_; }
  static constexpr int kNobody = -1;
  absl::Status DealOut(const std::function<int(uint64_t key)>& stripe_of);

  // Removes all files from the FdStore, so that a later daemon finds none. Any thread.
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
