#include "server/worker/cpu/seal.h"

#include <linux/seccomp.h>

#include "server/worker/cpu/fault_handler.h"
#include "server/worker/runtime/syscall_sets.h"
#include "server/worker/runtime/trapped_calls.h"

namespace stride::cpu {

absl::Status Seal() {
  worker::AnswerTrappedCalls(ReportForbiddenCall);
  return worker::MakeFilter(worker::SyscallSet::kSealed, SECCOMP_RET_TRAP).Install();
}

}  // namespace stride::cpu
