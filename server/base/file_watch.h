#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/timer.h"

namespace stride {

// Reports changes of files: contents, owner or mode. An editor empties a file before it writes it,
// and a certificate arrives before its key. So files count as changed only when two checks in a row
// find them equal. Thread-safe.
class FileWatch {
 public:
  explicit FileWatch(std::vector<std::string> paths);
  ~FileWatch() { Stop(); }

  // Calls `changed` at every change, on the watch's own thread, until Stop. Call at most once.
  void Start(absl::Duration interval, std::function<void()> changed);
  // Waits for a call in progress. Not to be called from `changed`.
  void Stop() { timer_.Stop(); }

  // One check: true when the files differ from those last read and have settled; they then count as
  // read. Start does this periodically.
  bool Look();
  // Call before the files are read, in any state.
  void BeginRead();
  // True if the files are unchanged since the last BeginRead, or the last Look that reported a
  // change. After a read, true means that the read content is one version of the files.
  bool Unchanged() const;

 private:
  // Attributes that change when a file does. All zero: the file is absent.
  struct Stamp {
    dev_t device = 0;
    ino_t file = 0;
    mode_t mode = 0;
    uid_t owner = 0;
    off_t size = 0;
    int64_t modified_seconds = 0, modified_nanos = 0;
    int64_t changed_seconds = 0, changed_nanos = 0;
    bool operator==(const Stamp&) const = default;
  };
  std::vector<Stamp> Stamps() const;
  void LookLater(absl::Duration interval, const std::function<void()>& changed);

  const std::vector<std::string> paths_;
  mutable absl::Mutex mutex_;
  std::vector<Stamp> read_ ABSL_GUARDED_BY(mutex_), seen_ ABSL_GUARDED_BY(mutex_);
  Timer timer_;
};

}  // namespace stride
