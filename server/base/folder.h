#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/unique_fd.h"

namespace stride {

// A folder that belongs to the daemon, held by descriptor. Names are single path components, and no
// symbolic link below the folder is followed, so none of its entries leads elsewhere. Only its
// owner, which is this user or root, may write it; otherwise FAILED_PRECONDITION with instructions.
// Movable; its functions are thread-safe.
class Folder {
 public:
  // A root folder that an administrator names: links in `path` are followed. Creates it, and its
  // parents, for this user alone if absent.
  static absl::StatusOr<Folder> MakeRoot(const std::string& path);
  // A folder within an administrator's folder: the last part of `path` must not be a link. `MakeIn`
  // creates it and its parents if absent, and removes other users' access.
  static absl::StatusOr<Folder> MakeIn(const std::string& path);
  static absl::StatusOr<Folder> OpenIn(const std::string& path);
  // Like MakeIn and OpenIn, relative to this folder.
  absl::StatusOr<Folder> Make(const std::string& name) const;
  absl::StatusOr<Folder> Open(const std::string& name) const;

  // Like openat; FAILED_PRECONDITION where the name is a link. Adds O_CLOEXEC to `flags`.
  absl::StatusOr<UniqueFd> OpenFile(const std::string& name, int flags, mode_t mode = 0600) const;
  // A nameless file (O_TMPFILE), for reading and writing.
  absl::StatusOr<UniqueFd> MakeNamelessFile() const;
  // Creates a file with a new name for reading and writing: `prefix` and six letters. `prefix`
  // receives the name.
  absl::StatusOr<UniqueFd> MakeFile(std::string* prefix) const;
  absl::Status Rename(const std::string& from, const Folder& folder, const std::string& to) const;
  // Removes a link itself, never its target. False: the file does not exist or cannot be removed.
  bool Remove(const std::string& name) const;
  // Without `.` and `..`.
  absl::StatusOr<std::vector<std::string>> List() const;
  // Returns once created and removed names are on disk.
  absl::Status Sync() const;

  int fd() const { return fd_.get(); }
  // The current path: for messages, and for functions that take only paths.
  absl::StatusOr<std::string> Path() const;

 private:
  Folder(UniqueFd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}
  static absl::StatusOr<Folder> MakeAt(int parent, const std::string& name, std::string shown);
  static absl::StatusOr<Folder> OpenAt(int parent, const std::string& name, int flags,
                                       const std::string& shown);
  std::string Shown(std::string_view name) const;

  UniqueFd fd_;
  std::string name_;  // for messages
};

}  // namespace stride
