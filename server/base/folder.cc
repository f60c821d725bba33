#include "server/base/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/base/random_id.h"
#include "server/base/system_error.h"

namespace stride {
namespace {

constexpr mode_t kOwnersAlone = 0700;
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
constexpr int kRandomLetters = 6;
constexpr int kMaxTries = 100;

absl::Status BadName() {
  return absl::InternalError("a name of a file must be one part of a path");
}

bool IsName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

void MakeParents(const std::string& path) {
  std::error_code shows_when_it_is_opened;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(),
                                      shows_when_it_is_opened);
}

// With a trailing slash a link would be followed.
std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

absl::Status OpenError(int error, const std::string& path) {
  if (error == ELOOP) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is a symbolic link, and none is followed there: remove it"));
  }
  if (error == ENOTDIR) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is no folder, or a symbolic link, and none is followed there"));
  }
  return SystemError(error, absl::StrCat("opening ", path));
}

absl::Status CheckOwner(const struct stat& info, const std::string& path) {
  if (info.st_uid != 0 && info.st_uid != geteuid()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the folder ", path, " belongs to user ", info.st_uid,
        ", who could put files in the place of the daemon's: chown ", geteuid(), " ", path));
  }
  if ((info.st_mode & kOthersWrite) != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "others than its owner may write the folder %s (mode %04o), and put files in the place of "
        "the daemon's: chmod go-w %s, or name a folder in it, which the daemon makes for itself",
        path, info.st_mode & 07777, path));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Folder> Folder::OpenAt(int parent, const std::string& name, int flags,
                                      const std::string& shown) {
  UniqueFd fd(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags));
  if (!fd.valid()) return OpenError(errno, shown);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return SystemError(errno, "looking at a folder");
  if (absl::Status status = CheckOwner(info, shown); !status.ok()) return status;
  return Folder(std::move(fd), shown);
}

absl::StatusOr<Folder> Folder::MakeAt(int parent, const std::string& name, std::string shown) {
  const bool made = mkdirat(parent, name.c_str(), kOwnersAlone) == 0;
  auto folder = OpenAt(parent, name, O_NOFOLLOW, shown);
  if (folder.ok() && !made) fchmod(folder->fd(), kOwnersAlone);
  return folder;
}

absl::StatusOr<Folder> Folder::MakeRoot(const std::string& path) {
  MakeParents(path);
  mkdir(path.c_str(), kOwnersAlone);
  return OpenAt(AT_FDCWD, path, 0, path);
}

absl::StatusOr<Folder> Folder::MakeIn(const std::string& path) {
  MakeParents(path);
  return MakeAt(AT_FDCWD, WithoutSlash(path), path);
}

absl::StatusOr<Folder> Folder::OpenIn(const std::string& path) {
  return OpenAt(AT_FDCWD, WithoutSlash(path), O_NOFOLLOW, path);
}

absl::StatusOr<Folder> Folder::Make(const std::string& name) const {
  if (!IsName(name)) return BadName();
  return MakeAt(fd(), name, Shown(name));
}

absl::StatusOr<Folder> Folder::Open(const std::string& name) const {
  if (!IsName(name)) return BadName();
  return OpenAt(fd(), name, O_NOFOLLOW, Shown(name));
}

std::string Folder::Shown(std::string_view name) const {
  return absl::StrCat(name_, "/", absl::string_view(name.data(), name.size()));
}

absl::StatusOr<UniqueFd> Folder::OpenFile(const std::string& name, int flags, mode_t mode) const {
  if (!IsName(name)) return BadName();
  UniqueFd file(openat(fd(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file.valid()) return OpenError(errno, Shown(name));
  return file;
}

absl::StatusOr<UniqueFd> Folder::MakeNamelessFile() const {
  UniqueFd file(openat(fd(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!file.valid()) return SystemError(errno, absl::StrCat("making a file in ", name_));
  return file;
}

absl::StatusOr<UniqueFd> Folder::MakeFile(std::string* prefix) const {
  for (int i = 0; i < kMaxTries; ++i) {
    std::string name = *prefix + RandomId(kRandomLetters);
    if (!IsName(name)) return BadName();
    UniqueFd file(openat(fd(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                         S_IRUSR | S_IWUSR));
    if (file.valid()) {
      *prefix = std::move(name);
      return file;
    }
    if (errno != EEXIST) return SystemError(errno, absl::StrCat("making a file in ", name_));
  }
  return absl::InternalError(absl::StrCat("no new name is free in ", name_));
}

absl::Status Folder::Rename(const std::string& from, const Folder& folder,
                            const std::string& to) const {
  if (!IsName(from) || !IsName(to)) return BadName();
  if (renameat(fd(), from.c_str(), folder.fd(), to.c_str()) != 0)
    return SystemError(errno, absl::StrCat("renaming ", Shown(from)));
  return absl::OkStatus();
}

bool Folder::Remove(const std::string& name) const {
  return IsName(name) && unlinkat(fd(), name.c_str(), 0) == 0;
}

absl::StatusOr<std::vector<std::string>> Folder::List() const {
  // Opens the folder again: a duplicate would share the read position.
  UniqueFd own(openat(fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!own.valid()) return SystemError(errno, absl::StrCat("listing ", name_));
  std::unique_ptr<DIR, int (*)(DIR*)> listing(fdopendir(own.get()), closedir);
  if (listing == nullptr) return SystemError(errno, absl::StrCat("listing ", name_));
  own.Release();
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(listing.get())) {
    if (IsName(entry->d_name)) names.emplace_back(entry->d_name);
  }
  if (errno != 0) return SystemError(errno, absl::StrCat("listing ", name_));
  return names;
}

absl::Status Folder::Sync() const {
  if (fsync(fd()) != 0) return SystemError(errno, absl::StrCat("writing ", name_));
  return absl::OkStatus();
}

absl::StatusOr<std::string> Folder::Path() const {
  std::error_code error;
  auto path = std::filesystem::read_symlink(absl::StrCat("/proc/self/fd/", fd()), error);
  if (error) return absl::InternalError(absl::StrCat("no path leads to ", name_));
  return path.string();
}

}  // namespace stride
