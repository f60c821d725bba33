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
#include "server/base/tenant_partition.h"
#include "server/base/unique_fd.h"
#include "server/fd_store/fd_store.h"
#include "server/recovery/journal.h"

namespace stride::recovery {

// All journals of a daemon: one for each partition of tenants, so that tenants of two partitions
// write concurrently, and a common one for records of no tenant. Each is committed by itself, so no
// record may need one of another journal. Two threads may use two journals; a journal is for one
// thread.
class Journals {
 public:
  // Empty ones, stored with the FdStore, which must outlive them. A later process finds none until
  // Complete.
  static absl::StatusOr<std::unique_ptr<Journals>> Create(fd_store::FdStore* fd_store);
  // Opens the journals that an earlier process left among these descriptors, by name. NOT_FOUND: it
  // left none, or died before Complete returned. DATA_LOSS: one is damaged or missing, so none is
  // used.
  static absl::StatusOr<std::unique_ptr<Journals>> Open(fd_store::FdStore* fd_store,
                                                        std::map<std::string, UniqueFd>* kept);
  // A descriptor of this name is a journal's.
  static bool IsFileName(std::string_view name);

  // Every journal has what the process began with: from now on a later one reads them. The caller
  // has committed all of them.
  absl::Status Complete();

  Journal& common() { return *common_; }
  Journal& of(int partition) { return *partitions_[partition]; }

  // Visits the records of all journals.
  void ForEach(const std::function<void(uint64_t key, std::string_view bytes)>& visit) const;
  // Erases the record from the partition that has it.
  void Erase(uint64_t key);

  // Removes all journals from the FdStore, so that a later process finds none. Any thread.
  void LetGo();

 private:
  explicit Journals(fd_store::FdStore* fd_store) : fd_store_(fd_store) {}

  fd_store::FdStore* const fd_store_;
  std::unique_ptr<Journal> common_;
  std::array<std::unique_ptr<Journal>, kNumTenantPartitions> partitions_;
};

}  // namespace stride::recovery
