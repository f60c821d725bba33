// Replaces strided where a test needs a process: accepts --listen=ADDRESS, ignores its other
// options, ends on SIGTERM.
#include <cstdio>
#include <string_view>

#include "tests/support/fake_daemon/fake_daemon.h"

int main(int argc, char** argv) {
  constexpr std::string_view kListen = "--listen=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.substr(0, kListen.size()) != kListen) continue;
    stride::testing::FakeDaemon daemon(std::string(argument.substr(kListen.size())));
    daemon.Wait();
    return 0;
  }
  std::fputs("--listen=ADDRESS is missing\n", stderr);
  return 2;
}
