#include "tests/support/inside_sandbox.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace stride::worker {

std::string InsideSandbox(const SandboxNeeds& needs, const std::function<std::string()>& test) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    signal(SIGXFSZ, SIG_IGN);  // like PrepareProcess
    std::string text;
    for (const auto& layer : EnterSandbox(SandboxMode::kTry, needs)) {
      // W^X may be missing from the kernel; all other layers must exist where these tests run.
      if (!layer.on() && layer.name() != "w^x") text += layer.name() + ": " + layer.reason() + "\n";
    }
    text += test();
    (void)!write(ends[1], text.data(), text.size());
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t size; (size = read(ends[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, size);
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFSIGNALED(status)) text += "killed by signal " + std::to_string(WTERMSIG(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
    text += "exit code " + std::to_string(WEXITSTATUS(status));
  }
  return text;
}

}  // namespace stride::worker
