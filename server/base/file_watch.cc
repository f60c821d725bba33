#include "server/base/file_watch.h"

#include <sys/stat.h>

#include <utility>

#include "server/base/environment.h"

namespace stride {

FileWatch::FileWatch(std::vector<std::string> paths) : paths_(std::move(paths)) { BeginRead(); }

std::vector<FileWatch::Stamp> FileWatch::Stamps() const {
  std::vector<Stamp> stamps;
  for (const std::string& path : paths_) {
    struct stat info;
    if (path.empty() || stat(path.c_str(), &info) != 0) {
      stamps.emplace_back();
      continue;
    }
    stamps.push_back({info.st_dev, info.st_ino, info.st_mode, info.st_uid, info.st_size,
                      info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec,
                      info.st_ctim.tv_nsec});
  }
  return stamps;
}

bool FileWatch::Look() {
  std::vector<Stamp> now = Stamps();
  absl::MutexLock lock(&mutex_);
  const bool settled = now == seen_ && now != read_;
  if (settled) read_ = now;
  seen_ = std::move(now);
  return settled;
}

void FileWatch::BeginRead() {
  std::vector<Stamp> now = Stamps();
  absl::MutexLock lock(&mutex_);
  read_ = seen_ = std::move(now);
}

bool FileWatch::Unchanged() const {
  std::vector<Stamp> now = Stamps();
  absl::MutexLock lock(&mutex_);
  return now == read_;
}

void FileWatch::Start(absl::Duration interval, std::function<void()> changed) {
  LookLater(interval, changed);
}

void FileWatch::LookLater(absl::Duration interval, const std::function<void()>& changed) {
  timer_.At(Now() + interval, [this, interval, changed] {
    if (Look()) changed();
    LookLater(interval, changed);
  });
}

}  // namespace stride
