#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/base/ids.h"

namespace stride::engine {

// The resources of one kind that the tenants of a partition have, by tenant and id. An entry stays
// where it is until it is erased. Not thread-safe: its owner's lock guards it.
template <typename Entry>
class ResourceMap {
 public:
  // Null: the tenant has none of this id.
  Entry* Find(const TenantId& tenant, std::string_view id) {
    return const_cast<Entry*>(std::as_const(*this).Find(tenant, id));
  }
  const Entry* Find(const TenantId& tenant, std::string_view id) const {
    const auto of_tenant = tenants_.find(tenant);
    if (of_tenant == tenants_.end()) return nullptr;
    const auto found = of_tenant->second.find(id);
    return found == of_tenant->second.end() ? nullptr : &found->second;
  }
  int64_t Count(const TenantId& tenant) const {
    const auto of_tenant = tenants_.find(tenant);
    return of_tenant == tenants_.end() ? 0 : static_cast<int64_t>(of_tenant->second.size());
  }
  // Replaces an entry of the same id.
  Entry& Set(const TenantId& tenant, const std::string& id, Entry entry) {
    return tenants_[tenant].insert_or_assign(id, std::move(entry)).first->second;
  }
  // Ignores an id that the tenant does not have.
  void Erase(const TenantId& tenant, std::string_view id) {
    const auto of_tenant = tenants_.find(tenant);
    if (of_tenant == tenants_.end()) return;
    const auto found = of_tenant->second.find(id);
    if (found == of_tenant->second.end()) return;
    of_tenant->second.erase(found);
    if (of_tenant->second.empty()) tenants_.erase(of_tenant);
  }
  // Erases the entries whose ids begin with `prefix` and for which `erases(id, entry)` holds.
  template <typename Erases>
  void EraseIf(const TenantId& tenant, std::string_view prefix, Erases erases) {
    const auto of_tenant = tenants_.find(tenant);
    if (of_tenant == tenants_.end()) return;
    ById& entries = of_tenant->second;
    for (auto it = entries.lower_bound(prefix);
         it != entries.end() && std::string_view(it->first).starts_with(prefix);)
      it = erases(std::string_view(it->first), it->second) ? entries.erase(it) : std::next(it);
    if (entries.empty()) tenants_.erase(of_tenant);
  }
  // The tenant's entries in the order of their ids: `share(entry)` of each whose id is after
  // `token`, at most one more than a page has. `share` returns an owner that outlives the lock. The
  // token of a page is its last id, so that entries may come and go between pages.
  template <typename Share>
  auto PageAfter(const TenantId& tenant, std::string_view token, int page_size, Share share) const {
    std::vector<std::pair<std::string, decltype(share(std::declval<const Entry&>()))>> page;
    const auto of_tenant = tenants_.find(tenant);
    if (of_tenant == tenants_.end()) return page;
    const ById& entries = of_tenant->second;
    for (auto it = entries.upper_bound(token);
         it != entries.end() && page.size() <= static_cast<size_t>(page_size); ++it)
      page.emplace_back(it->first, share(it->second));
    return page;
  }
  template <typename Visit>
  void ForEach(const TenantId& tenant, Visit visit) const {
    const auto of_tenant = tenants_.find(tenant);
    if (of_tenant == tenants_.end()) return;
    for (const auto& [id, entry] : of_tenant->second) visit(id, entry);
  }
  // The entries of all tenants.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const auto& [tenant, entries] : tenants_) {
      for (const auto& [id, entry] : entries) visit(id, entry);
    }
  }

 private:
  using ById = std::map<std::string, Entry, std::less<>>;
  std::map<TenantId, ById> tenants_;  // none has no entry
};

}  // namespace stride::engine
