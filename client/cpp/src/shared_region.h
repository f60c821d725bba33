// One region of the daemon's (RegionService), mapped here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "client/cpp/src/channels.h"
#include "stride/result.h"

namespace stride::internal {

// Unmapped when it goes; the daemon's side of it goes with Delete, or the session. Immutable but
// for its bytes.
class SharedRegion {
 public:
  // `session` is `sessions/{id}`. Blocks for two round trips, and while the daemon takes the memory
  // (up to a second a GiB).
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

  // Before the daemon takes its pages back: the bytes move into this process's own memory, at the
  // same place.
  void KeepBytes() const;
  // Tells the daemon that it is not needed any more. Failure is no matter: it goes with the
  // session.
  void Delete(Channels& channels) const;

 private:
  const std::string name_, session_;
  std::byte* const data_;
  const int64_t size_;
};

}  // namespace stride::internal
