#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "server/base/steady_time.h"
#include "server/engine/service/array_service.h"

namespace stride::testing {

// Arrays as strings in memory, by name. FakeOperations writes them. Thread-safe.
class FakeArrays : public engine::ArrayService {
 public:
  FakeArrays();

  // --- for tests ---
  // Calls on the array return this error.
  void FailArray(const std::string& name, absl::Status status);
  void PutBytes(const std::string& name, std::string bytes);
  std::string BytesOf(const std::string& name) const;
  int num_open_uploads() const;
  // Chunks of Download::Next whose lease still exists.
  int num_leases() const;

  // --- ArrayService ---
  absl::StatusOr<v1::Array> Create(const TenantId& tenant,
                                   const v1::CreateArrayRequest& request) override;
  absl::StatusOr<v1::Array> Get(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<v1::ListArraysResponse> List(const TenantId& tenant,
                                              const v1::ListArraysRequest& request) override;
  absl::Status Delete(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<std::unique_ptr<engine::Upload>> BeginUpload(
      const TenantId& tenant, const v1::PutArrayRequest::Header& header,
      SteadyTime deadline) override;
  absl::StatusOr<std::unique_ptr<engine::Download>> BeginDownload(
      const TenantId& tenant, const v1::FetchArrayRequest& request, SteadyTime deadline) override;
  absl::StatusOr<std::unique_ptr<engine::Download>> BeginFetch(const TenantId& tenant,
                                                               const std::string& session,
                                                               uint64_t handle) override;

 private:
  friend class FakeOperations;
  friend class FakeHandle;
  friend class FakeAccess;
  friend class FakeSource;
  struct Entry {
    std::string bytes;
    bool ready = true;
    absl::Status error;
  };
  // Shared with the uploads, downloads and operations that use it.
  struct State {
    // Returns `done()` at `deadline` at the latest. `lock` holds the mutex.
    bool WaitUntil(SteadyTime deadline, std::unique_lock<std::mutex>& lock,
                   const std::function<bool()>& done);

    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::string, Entry> arrays;
    int64_t generation = 0;  // number of times that all arrays became ready
    int uploads = 0;
    std::atomic<int> leases{0};
  };
  static std::string HandleName(const std::string& session, uint64_t handle);
  static v1::Array Describe(const std::string& name, const Entry& array);
  static v1::InlineArray Inline(const std::string& bytes);
  static absl::Status NotThere(const std::string& name);

  const std::shared_ptr<State> state_;
};

}  // namespace stride::testing
