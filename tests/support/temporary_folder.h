// A folder of a test's own, removed with its contents at the end. The namespace is not
// stride::testing, which would hide ::testing from a test in namespace stride.
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

namespace stride::test_support {

// Removes `path` and its contents. A process that a test killed may still write there: the removal
// then tries again, and after some attempts leaves the folder. It never throws, so that a
// destructor may call it.
inline void RemoveFolder(const std::filesystem::path& path) noexcept {
  constexpr int kAttempts = 10;
  std::error_code error;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::filesystem::remove_all(path, error);
    if (!error) return;
  }
  std::fprintf(stderr, "%s stays: %s\n", path.c_str(), error.message().c_str());
}

class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& prefix = "stride-test") {
    path_ = (std::filesystem::temp_directory_path() / (prefix + "-XXXXXX")).string();
    if (mkdtemp(path_.data()) == nullptr)
      throw std::filesystem::filesystem_error("no temporary folder", path_,
                                              std::error_code(errno, std::generic_category()));
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { RemoveFolder(path_); }

  const std::string& path() const { return path_; }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace stride::test_support
