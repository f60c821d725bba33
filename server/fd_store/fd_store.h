#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/passed_fds.h"

namespace stride::fd_store {

// FdStore: another process that holds descriptors, so that their memory, journal files and
// listening sockets outlive the daemon. Thread-safe.
class FdStore {
 public:
  virtual ~FdStore() = default;

  // False: nothing is stored, and callers can skip work that depends on it.
  virtual bool keeps() const = 0;

  // Returns once the descriptor is stored, or an error (RESOURCE_EXHAUSTED: the FdStore is full).
  // The caller keeps its own descriptor. An earlier descriptor of this name is closed. `name`: 1 to
  // 200 characters that IsName accepts.
  virtual absl::Status Store(const std::string& name, int fd) = 0;
  // Closes the stored descriptor; no error when there is none.
  virtual void Remove(const std::string& name) = 0;

  // Descriptors stored by an earlier daemon; they stay stored. Call once, at the start.
  virtual std::vector<NamedFd> TakeAll() = 0;

  // Reports that the daemon serves: a later death is not a failed start.
  virtual void Ready() {}
  // Reports that the daemon has answered a health call to itself. An FdStore that replaces a hung
  // daemon needs this at least once per `patience()`, from Ready until the end.
  virtual void Alive() {}
  virtual absl::Duration patience() const { return absl::InfiniteDuration(); }
};

// Letters, digits and -_./|@[]%: the characters valid in descriptor names everywhere.
bool IsName(const std::string& name);

// Stores nothing.
std::unique_ptr<FdStore> MakeNullFdStore();

}  // namespace stride::fd_store
