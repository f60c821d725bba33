#include "server/durable/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include "absl/time/time.h"
#include "server/base/environment.h"
#include "server/base/steady_time.h"

namespace stride::durable {
namespace {

// A daemon that was killed may take a moment to end.
constexpr absl::Duration kPatience = absl::Seconds(3);
constexpr absl::Duration kRetry = absl::Milliseconds(20);

}  // namespace

absl::StatusOr<UniqueFd> LockFolder(const Folder& folder, const std::string& name) {
  auto lock = folder.OpenFile(name, O_RDWR | O_CREAT);
  if (!lock.ok()) return lock;
  const SteadyTime give_up = Now() + kPatience;
  while (flock(lock->get(), LOCK_EX | LOCK_NB) != 0) {
    if (Now() > give_up) return absl::FailedPreconditionError("another process has the folder");
    absl::SleepFor(kRetry);
  }
  return lock;
}

}  // namespace stride::durable
