#include "server/fd_store/fd_store.h"

#include <algorithm>
#include <cstring>

namespace stride::fd_store {
namespace {

constexpr size_t kMaxName = 200;

class NullFdStore : public FdStore {
 public:
  bool keeps() const override { return false; }
  absl::Status Store(const std::string&, int) override { return absl::OkStatus(); }
  void Remove(const std::string&) override {}
  std::vector<NamedFd> TakeAll() override { return {}; }
};

}  // namespace

bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxName &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  (c != '\0' && std::strchr("-_./|@[]%", c) != nullptr);
         });
}

std::unique_ptr<FdStore> MakeNullFdStore() { return std::make_unique<NullFdStore>(); }

}  // namespace stride::fd_store
