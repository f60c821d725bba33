#include "client/cli/private_daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

extern char** environ;

namespace stride::cli {
namespace {

namespace fs = std::filesystem;

// A GPU worker's first context takes seconds on a machine with many GPUs.
constexpr auto kStartTimeout = std::chrono::seconds(60);
constexpr auto kStopTimeout = std::chrono::seconds(10);
constexpr auto kPoll = std::chrono::milliseconds(10);

bool IsProgram(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

Error Unavailable(std::string message) {
  return {.code = Code::kUnavailable, .message = std::move(message)};
}

std::string MakeDirectory() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const char* tmp = std::getenv("TMPDIR");
  // Skip long folders such as a long TMPDIR: a socket path has at most 107 bytes.
  for (const char* base : {runtime, tmp, "/tmp"}) {
    if (!base || !*base || std::strlen(base) > 60) continue;
    std::string path = std::string(base) + "/stride.XXXXXX";
    // mkdtemp creates the directory with mode 0700.
    if (mkdtemp(path.data())) return path;
  }
  return "";
}

}  // namespace

std::string FindDaemon() {
  if (const char* given = std::getenv("STRIDE_DAEMON"); given && *given) return given;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error && IsProgram(self.parent_path() / "strided")) return self.parent_path() / "strided";
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (!folder.empty() && IsProgram(fs::path(folder) / "strided"))
      return fs::path(folder) / "strided";
  }
  return "";
}

std::string UserCacheFolder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  fs::path folder;
  if (cache && *cache == '/') {
    folder = cache;
  } else if (home && *home == '/') {
    folder = fs::path(home) / ".cache";
  } else {
    return "";
  }
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  folder /= "stride";
  mkdir(folder.c_str(), 0700);
  struct stat status;
  const bool own = lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
                   status.st_uid == geteuid() && (status.st_mode & 022) == 0;
  return own && access(folder.c_str(), W_OK | X_OK) == 0 ? folder.string() : "";
}

Result<std::unique_ptr<PrivateDaemon>> PrivateDaemon::Start(
    const Cancellation& cancellation, const std::vector<std::string>& arguments) {
  const std::string executable = FindDaemon();
  if (executable.empty()) {
    return Unavailable(
        "No daemon is running, and no strided to start one was found next to this program or "
        "in PATH "
        "(or name it by STRIDE_DAEMON). Install strided, or name a daemon with --address");
  }
  std::unique_ptr<PrivateDaemon> daemon(new PrivateDaemon);
  daemon->directory_ = MakeDirectory();
  if (daemon->directory_.empty())
    return Unavailable("No folder for a private daemon can be made in /tmp");
  daemon->address_ = "unix:" + daemon->directory_ + "/s";
  if (auto spawned = daemon->Spawn(executable, arguments); !spawned) return spawned.error();
  if (auto serving = daemon->WaitUntilServing(cancellation); !serving) return serving.error();
  return daemon;
}

Result<void> PrivateDaemon::Spawn(const std::string& executable,
                                  const std::vector<std::string>& more) {
  const std::string state = directory_ + "/state";
  std::error_code error;
  fs::create_directory(state, error);
  std::vector<std::string> arguments = {executable, "--listen=" + address_, "--state-dir=" + state,
                                        "--durable-bytes=0",
                                        "--parent-pid=" + std::to_string(getpid())};
  if (const std::string cache = UserCacheFolder(); !cache.empty())
    arguments.push_back("--cache-dir=" + cache);
  arguments.insert(arguments.end(), more.begin(), more.end());
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  const std::string log = directory_ + "/log";
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A process group of its own: the terminal sends Ctrl-C only to this program, which then stops
  // the daemon in order. The daemon must not inherit our blocked signals.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  const int failed =
      posix_spawn(&pid_, executable.c_str(), &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) {
    pid_ = -1;
    return Unavailable(executable + " cannot be started: " + std::strerror(failed));
  }
  return {};
}

bool PrivateDaemon::Exited() {
  if (pid_ < 0) return true;
  if (waitpid(pid_, nullptr, WNOHANG) != pid_) return false;
  pid_ = -1;
  return true;
}

Result<void> PrivateDaemon::WaitUntilServing(const Cancellation& cancellation) {
  const auto deadline = std::chrono::steady_clock::now() + kStartTimeout;
  std::string last = "it never answered";
  while (std::chrono::steady_clock::now() < deadline) {
    if (Exited()) return Unavailable("strided ended at once. The end of its log:\n" + LogTail());
    if (cancellation.cancelled()) return Error{.code = Code::kCancelled, .message = "Interrupted"};
    if (fs::exists(directory_ + "/s")) {
      auto client =
          Client::Connect({.address = address_, .connect_timeout = std::chrono::milliseconds(500)});
      if (client) {
        auto devices = client->ListDevices({.timeout = std::chrono::seconds(5)});
        if (devices) return {};
        last = devices.error().message;
      }
    }
    std::this_thread::sleep_for(kPoll);
  }
  return Unavailable("The private strided does not serve: " + last + "\n" + LogTail());
}

std::string PrivateDaemon::LogTail() const {
  std::ifstream file(directory_ + "/log");
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  constexpr size_t kTail = 2000;
  return all.size() > kTail ? all.substr(all.size() - kTail) : all;
}

PrivateDaemon::~PrivateDaemon() {
  if (!Exited()) {
    kill(pid_, SIGTERM);
    const auto deadline = std::chrono::steady_clock::now() + kStopTimeout;
    while (!Exited() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(kPoll);
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  std::error_code error;
  if (!directory_.empty()) fs::remove_all(directory_, error);
}

}  // namespace stride::cli
