#include "server/broker/precompiled_modules.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace stride::broker {
namespace {

bool IsTrusted(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
         (info.st_uid == 0 || info.st_uid == geteuid()) &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

PrecompiledModules::PrecompiledModules(const std::string& folder) {
  if (folder.empty()) return;
  auto opened = Folder::OpenIn(folder);
  if (!opened.ok()) {
    if (!absl::IsNotFound(opened.status())) status_ = opened.status();
    return;
  }
  folder_ = *std::move(opened);
  auto names = folder_->List();
  if (names.ok()) names_.insert(names->begin(), names->end());
}

std::optional<ModuleFiles::Entry> PrecompiledModules::Read(const std::string& key) const {
  if (!folder_.has_value() || !Has(key)) return std::nullopt;
  // Non-blocking, since opening a pipe would wait for a writer.
  auto file = folder_->OpenFile(ModuleFileName(key), O_RDONLY | O_NONBLOCK);
  if (!file.ok() || !IsTrusted(file->get())) return std::nullopt;
  return ReadModuleFile(file->get());
}

}  // namespace stride::broker
