#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/passed_fds.h"

namespace stride::keeper {

// Another process that holds descriptors for us, so that what they stand for outlives the daemon:
// memory, the journal, listening sockets. Thread-safe.
class Keeper {
 public:
  virtual ~Keeper() = default;

  // False: nothing is kept, and whatever depends on it need not be done.
  virtual bool keeps() const = 0;

  // Returns once the descriptor is safe, or tells that it is not (RESOURCE_EXHAUSTED: the keeper is
  // full). The caller keeps its own. What had the name before is let go. A name is 1 to 200 of the
  // characters that IsName takes.
  virtual absl::Status Store(const std::string& name, int fd) = 0;
  // Lets go of it; no error when there is none.
  virtual void Remove(const std::string& name) = 0;

  // What an earlier daemon stored; it stays kept. At the start, once.
  virtual std::vector<NamedFd> TakeAll() = 0;

  // The daemon serves: its death from here on is not one at the start.
  virtual void Ready() {}
  // The daemon has just answered a call to itself. A keeper that replaces a daemon that hangs wants
  // to hear this more often than every `patience()`, from Ready on until the end.
  virtual void Alive() {}
  virtual absl::Duration patience() const { return absl::InfiniteDuration(); }
};

// Letters, digits and -_./|@[]%: what the name of a descriptor may hold everywhere.
bool IsName(const std::string& name);

// Keeps nothing.
std::unique_ptr<Keeper> MakeNullKeeper();

}  // namespace stride::keeper
