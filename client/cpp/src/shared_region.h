// One region of the daemon (RegionService), mapped into this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "client/cpp/src/channels.h"
#include "stride/result.h"

namespace stride::internal {

// Destruction unmaps it; the daemon's side ends with Delete or the session. Immutable except its
// bytes.
class SharedRegion {
 public:
  // `session` is `sessions/{id}`. Blocks for two round trips, and while the daemon allocates the
  // memory (up to a second per GiB).
  static Result<std::shared_ptr<SharedRegion>> Create(Channels& channels,
                                                      const std::string& session, int64_t bytes);
  SharedRegion(std::string name, std::string session, std::byte* data, int64_t size)
      : name_(std::move(name)), session_(std::move(session)), data_(data), size_(size) {}
  SharedRegion(const SharedRegion&) = delete;
  ~SharedRegion();

  const std::string& name() const { return name_; }
  const std::string& session() const { return session_; }
  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }

  // Call before the daemon frees its pages: copies the bytes to this process's own memory at the
  // same address.
  void KeepBytes() const;
  // Releases the region at the daemon. Failure is ignored: the session's end releases it too.
  void Delete(Channels& channels) const;

 private:
  const std::string name_, session_;
  std::byte* const data_;
  const int64_t size_;
};

}  // namespace stride::internal
