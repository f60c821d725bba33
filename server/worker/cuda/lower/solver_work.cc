#include "server/worker/cuda/lower/solver_work.h"

#include "absl/strings/str_cat.h"

namespace stride::cuda {

absl::Status SolverWork::CheckWritten() const {
  if (device_bytes_ != kUnwritten && host_bytes_ != kUnwritten) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(std::string(routine_.name), " was asked for its work memory and named no size"));
}

absl::Status SolverWork::CheckGiven(const SolverRoutine& routine, uint64_t address,
                                    uint64_t given_bytes) const {
  const std::string name(routine.name);
  if (!(routine_ == routine)) {
    return absl::InternalError(
        absl::StrCat(name, " is called with the work memory of another call: ",
                     routine_.name.empty() ? std::string("none") : std::string(routine_.name)));
  }
  if (given_bytes >= device_bytes_ && (address != 0 || device_bytes_ == 0)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(name, " needs ", device_bytes_,
                                          " bytes of work memory on the device and is given ",
                                          address == 0 ? 0 : given_bytes));
}

}  // namespace stride::cuda
