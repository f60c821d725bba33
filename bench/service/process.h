// Child processes of a benchmark: the daemon, and the baselines' servers.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace stride::bench {

// Its standard input is a pipe that closes with us, its standard output and error go to a pipe that
// WaitForLine reads. Destruction ends it (SIGTERM, after 10 s SIGKILL) and waits for it.
class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // The first line of its output that holds `text`. Empty when it ends before it says so; what it
  // said goes to our standard error then. Later output is drained and lost.
  std::string WaitForLine(const std::string& text);

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
};

// The folder of this program.
std::string ProgramFolder();
// This program.
std::string OwnPath();

// A folder for sockets, removed with all it holds.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Servers call this once they serve: returns when the process that started them is gone or has
// closed their input.
void WaitForEndOfInput();

}  // namespace stride::bench
