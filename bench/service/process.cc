#include "bench/service/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

extern char** environ;

namespace stride::bench {
namespace {

constexpr auto kGrace = std::chrono::seconds(10);

}  // namespace

Process::Process(const std::vector<std::string>& arguments) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return;
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, out[1], STDERR_FILENO);
  if (posix_spawn(&pid_, argv[0], &files, nullptr, argv.data(), environ) != 0) pid_ = -1;
  posix_spawn_file_actions_destroy(&files);
  close(in[0]);
  close(out[1]);
  input_ = in[1];
  output_ = out[0];
}

Process::~Process() {
  if (input_ >= 0) close(input_);
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
    const auto deadline = std::chrono::steady_clock::now() + kGrace;
    while (waitpid(pid_, nullptr, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) kill(pid_, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  // Ours is the only end left, save in workers that outlive their daemon by moments.
  if (output_ >= 0) close(output_);
}

std::string Process::WaitForLine(const std::string& text) {
  if (pid_ < 0) return "";
  std::string said;
  size_t line = 0;
  char buffer[4096];
  for (ssize_t size; (size = read(output_, buffer, sizeof(buffer))) > 0;) {
    said.append(buffer, size);
    for (size_t end; (end = said.find('\n', line)) != std::string::npos; line = end + 1) {
      std::string candidate = said.substr(line, end - line);
      if (candidate.find(text) == std::string::npos) continue;
      // A full pipe would stop the child.
      std::thread([fd = dup(output_)] {
        char rest[4096];
        while (read(fd, rest, sizeof(rest)) > 0) {
        }
        close(fd);
      }).detach();
      return candidate;
    }
  }
  std::fprintf(stderr, "%s", said.c_str());
  return "";
}

std::string OwnPath() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string ProgramFolder() { return std::filesystem::path(OwnPath()).parent_path().string(); }

TemporaryFolder::TemporaryFolder() : path_("/tmp/stride-bench.XXXXXX") {
  if (!mkdtemp(path_.data())) path_.clear();
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

void WaitForEndOfInput() {
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

}  // namespace stride::bench
