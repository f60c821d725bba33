#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace stride::worker {

// A system call filter as a list of rules, compiled to the kernel's BPF. A call that no rule
// matches gets the default action; one of a foreign architecture (32-bit, x32) kills the process.
class SeccompFilter {
 public:
  // One condition on the low 32 bits of an argument: (argument & mask) == value.
  struct Check {
    int argument;
    uint32_t mask;
    uint32_t value;
  };

  // `otherwise` such as SECCOMP_RET_TRAP.
  explicit SeccompFilter(uint32_t otherwise) : otherwise_(otherwise) {}

  // Allows the call when every check holds; otherwise later rules apply.
  void Allow(int call, std::vector<Check> checks = {});
  // The call fails with this errno.
  void Fail(int call, int error);

  // Installs the filter permanently in all threads of this process. Needs no_new_privs.
  absl::Status Install() const;

  // For tests.
  std::vector<sock_filter> Program() const;

 private:
  struct Rule {
    int call;
    std::vector<Check> checks;
    uint32_t action;
  };
  const uint32_t otherwise_;
  std::vector<Rule> rules_;
};

}  // namespace stride::worker
