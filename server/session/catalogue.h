#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/block_pool.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"
#include "server/session/array.h"
#include "server/session/control_account.h"
#include "server/session/printed_output.h"
#include "server/session/resource_name.h"
#include "server/session/tenant_accounts.h"
#include "server/tenant/resource_map.h"
#include "server/tenant/transaction.h"

namespace stride::session {

// A client's handle table. The tenant's transactions guard it.
struct Session {
  std::string id;
  std::shared_ptr<const std::string> name;  // `sessions/{id}`; the catalogue sets it
  TenantId tenant;
  SteadyTime create_time;
  absl::Duration ttl;
  SteadyTime expire_time;
  int num_pins = 0;       // open streams and running jobs: a pinned session does not expire
  ControlCharge control;  // also the account that its handles are charged to
  // It is ending: lookups do not return it, and its name stays taken until its arrays are released.
  bool closed = false;
  // Device of the session's last placement, so that arrays that are used together start out
  // together; -1: none yet.
  int home_device = -1;
  // Ordered by handle, so that the session's end releases them in a fixed order.
  using HandleEntry = std::pair<const uint64_t, std::shared_ptr<Array>>;
  absl::btree_map<uint64_t, std::shared_ptr<Array>, std::less<uint64_t>, PoolAllocator<HandleEntry>>
      arrays;
  uint64_t record = 0;    // id of its record in the journal; 0: none
  PrintedOutput printed;  // text printed by kernels and not read yet
};

// The sessions of all tenants with their handles, and the named arrays. Sessions and named arrays
// are added and removed in global transactions; other changes happen in the tenant's. A lookup of
// another tenant's name returns NOT_FOUND with the same text as for a name that does not exist.
class Catalogue {
 public:
  // Entries are charged to their tenants' accounts.
  explicit Catalogue(std::shared_ptr<TenantAccounts> accounts = std::make_shared<TenantAccounts>())
      : accounts_(std::move(accounts)) {}

  // Notified of each entry added and removed. A session's arrays are removed before the session.
  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void Added(engine::GlobalTransaction& transaction, Session& session) = 0;
    virtual void Removed(engine::GlobalTransaction& transaction, Session& session) = 0;
    virtual void Added(engine::TenantTransaction& transaction,
                       const std::shared_ptr<Array>& array) = 0;
    virtual void Removed(engine::TenantTransaction& transaction, Array& array) = 0;
  };
  void add_observer(Observer* observer) { observers_.push_back(observer); }

  absl::StatusOr<std::shared_ptr<Session>> CreateSession(engine::GlobalTransaction& transaction,
                                                         const TenantId& tenant,
                                                         const std::string& id, absl::Duration ttl,
                                                         SteadyTime now, int max_sessions);
  int NumSessions(engine::TenantTransaction& transaction, const TenantId& tenant) const;
  // Renews the session.
  absl::StatusOr<std::shared_ptr<Session>> FindSession(engine::TenantTransaction& transaction,
                                                       const TenantId& tenant, std::string_view id,
                                                       SteadyTime now);
  // The same, by `sessions/{id}`. Errors name `field`.
  absl::StatusOr<std::shared_ptr<Session>> FindSessionNamed(engine::TenantTransaction& transaction,
                                                            const TenantId& tenant,
                                                            std::string_view name,
                                                            std::string_view field, SteadyTime now);
  // Closes the session: lookups no longer return it, and its end begins.
  absl::StatusOr<std::shared_ptr<Session>> CloseSession(engine::TenantTransaction& transaction,
                                                        const TenantId& tenant,
                                                        std::string_view id);
  // Ignores a session that does not exist.
  void DeleteSession(engine::GlobalTransaction& transaction, const TenantId& tenant,
                     const std::string& id);
  // Ignores a handle that refers to no array.
  void ReleaseHandle(engine::TenantTransaction& transaction, Session& session, uint64_t handle);
  // Adds a session of an earlier daemon.
  void Restore(engine::GlobalTransaction& transaction, std::shared_ptr<Session> session);
  std::vector<std::shared_ptr<Session>> CloseExpiredSessions(engine::GlobalTransaction& transaction,
                                                             SteadyTime now);

  absl::StatusOr<std::shared_ptr<Array>> FindArray(engine::TenantTransaction& transaction,
                                                   const TenantId& tenant, const ArrayName& name,
                                                   SteadyTime now);
  static absl::StatusOr<std::shared_ptr<Array>> FindArray(const Session& session, uint64_t handle);
  // Whether FindArray would succeed. It makes no error status, for callers that expect none.
  bool Has(engine::TenantTransaction& transaction, const TenantId& tenant,
           const ArrayName& name) const;
  // ALREADY_EXISTS when the name is taken, SESSION_NOT_FOUND, RESOURCE_EXHAUSTED beyond the quota;
  // otherwise stores `array` and sets its name. No quota applies to an array that an earlier daemon
  // accepted.
  enum class Quota { kApplies, kExempt };
  absl::Status AddArray(engine::TenantTransaction& transaction, const TenantId& tenant,
                        const ArrayName& name, std::shared_ptr<Array> array, SteadyTime now,
                        Quota quota = Quota::kApplies);
  // The same, under a handle of a session that is in the catalogue.
  absl::Status AddArray(engine::TenantTransaction& transaction, Session& session, uint64_t handle,
                        std::shared_ptr<Array> array, Quota quota = Quota::kApplies);
  // Returns the removed array, so that the caller decides when its memory is released.
  absl::StatusOr<std::shared_ptr<Array>> RemoveArray(engine::TenantTransaction& transaction,
                                                     const TenantId& tenant, const ArrayName& name,
                                                     SteadyTime now);
  // Removes and returns expired arrays. Checks at most this many per call and resumes there in the
  // next call: other threads wait for the lock, and a tenant may have millions of arrays.
  static constexpr int kMostLookedAt = 10000;
  std::vector<std::shared_ptr<Array>> TakeExpiredArrays(engine::GlobalTransaction& transaction,
                                                        SteadyTime now);

  // Arrays with their ids or handles as text, sorted by that text, after `token`: up to one more
  // than `page_size`.
  absl::StatusOr<std::vector<std::pair<std::string, std::shared_ptr<Array>>>> ListArrays(
      engine::TenantTransaction& transaction, const TenantId& tenant, const std::string& parent,
      int page_size, const std::string& token, SteadyTime now);

 private:
  static void SetTenant(Array& array, const TenantId& tenant);
  static absl::Status Charge(ControlAccount& account, int64_t bytes, Quota quota, Array& array);
  // Orders by tenant and id; lookups pass references to both and copy neither.
  struct KeyLess {
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      const int order = a.first.value.compare(b.first.value);
      return order != 0 ? order < 0 : a.second < b.second;
    }
  };
  using Key = std::pair<TenantId, std::string>;
  using KeyView = std::pair<const TenantId&, std::string_view>;
  template <typename T>
  using ByKey = std::map<Key, std::shared_ptr<T>, KeyLess>;
  void Close(engine::TenantTransaction& transaction, Session& session);
  // Null: there is none, or it is closed.
  const std::shared_ptr<Session>& Lookup(engine::TenantTransaction& transaction,
                                         const TenantId& tenant, std::string_view id);
  void Tell(engine::TenantTransaction& transaction, const std::shared_ptr<Array>& added);
  void TellRemoved(engine::TenantTransaction& transaction, Array& array);

  const std::shared_ptr<TenantAccounts> accounts_;
  std::vector<Observer*> observers_;
  struct Partition {
    engine::ResourceMap<std::shared_ptr<Session>> sessions;
    // The session found last, since most lookups repeat it. Null: none, or it was removed.
    std::shared_ptr<Session> latest;
  };
  engine::PerPartition<Partition> partitions_;
  ByKey<Array> named_;  // changes in global transactions
  Key next_looked_at_;  // named array from which the next TakeExpiredArrays resumes
};

}  // namespace stride::session
