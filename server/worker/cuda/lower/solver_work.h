#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/dtype.h"

namespace stride::cuda {

// One routine of a library for matrices of one kind: the values that determine its work memory.
struct SolverRoutine {
  std::string_view name;  // must refer to a literal
  DType dtype = DType::kFloat64;
  int64_t m = 0, n = 0, k = 0;
  char vectors = 'N';
  bool upper = false;

  bool operator==(const SolverRoutine& other) const {
    return name == other.name && dtype == other.dtype && m == other.m && n == other.n &&
           k == other.k && vectors == other.vectors && upper == other.upper;
  }
};

// Work memory that a library has requested for one routine. Only AskFor creates one, and a size is
// read only after the library has written it.
class SolverWork {
 public:
  // The work of no routine: no call accepts it.
  SolverWork() = default;

  // `ask(size_t* device_bytes, size_t* host_bytes)` calls the library and returns a status.
  // INTERNAL when the library reports success and leaves a size unwritten.
  template <typename Ask>
  static absl::StatusOr<SolverWork> AskFor(const SolverRoutine& routine, Ask ask) {
    SolverWork work;
    work.routine_ = routine;
    absl::Status asked = ask(&work.device_bytes_, &work.host_bytes_);
    if (asked.ok()) asked = work.CheckWritten();
    if (!asked.ok()) return asked;
    return work;
  }

  size_t device_bytes() const { return routine_.name.empty() ? 0 : device_bytes_; }
  size_t host_bytes() const { return routine_.name.empty() ? 0 : host_bytes_; }

  // Checks that a call of `routine` may use `given_bytes` bytes of device memory at `address`.
  // INTERNAL when the library was not asked about this routine, or when it gets less than it
  // requested.
  absl::Status CheckGiven(const SolverRoutine& routine, uint64_t address,
                          uint64_t given_bytes) const;

 private:
  // No library requests this much.
  static constexpr size_t kUnwritten = ~size_t{0};

  absl::Status CheckWritten() const;

  SolverRoutine routine_;
  size_t device_bytes_ = kUnwritten;
  size_t host_bytes_ = kUnwritten;
};

}  // namespace stride::cuda
