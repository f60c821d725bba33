// A client's view of arrays in the daemon.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stride/call_options.h"
#include "stride/data_type.h"
#include "stride/result.h"
#include "stride/sharding.h"
#include "stride/timeline.h"

namespace stride {

namespace internal {
class ArrayState;
}

struct ArraySpec {
  DataType data_type = DataType::kUnspecified;
  // Outermost axis first; empty: one element.
  std::vector<int64_t> shape;

  bool operator==(const ArraySpec&) const = default;
};

// Number of elements, and bytes in C order; nullopt when an extent is negative or the product
// exceeds 63 bits.
std::optional<int64_t> NumElements(const ArraySpec& spec);
std::optional<int64_t> SizeBytes(const ArraySpec& spec);

// `float32[3,4]`
std::string ToString(const ArraySpec& spec);

struct ArrayInfo {
  enum class State { kUnspecified, kPending, kReady, kFailed };
  std::string name;
  ArraySpec spec;
  // Bytes between neighbouring elements along each axis.
  std::vector<int64_t> strides;
  int64_t size_bytes = 0;
  State state = State::kUnspecified;
  // Set with kFailed.
  std::optional<Error> error;
  // Devices with a valid copy.
  std::vector<std::string> devices;
  // Set for an array that is spread over several devices.
  std::optional<Sharding> sharding;
};

// A handle of one array in a Client's session. It is valid as an operand from the call that creates
// it, before the array has content. A failed operation leaves its error on its arrays, and each
// later use reports that error.
//
// Move-only. The daemon releases the handle once the Array and every Operand made from it are
// destroyed; releases are sent in batches. An Array may outlive its Client, but is then unusable.
// Any thread may use it, one at a time.
class Array {
 public:
  // Refers to no array; each use returns INVALID_ARGUMENT.
  Array() = default;
  explicit Array(std::shared_ptr<internal::ArrayState> state) : state_(std::move(state)) {}
  Array(Array&&) = default;
  Array& operator=(Array&&) = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  explicit operator bool() const { return state_ != nullptr; }
  // `sessions/{session}/arrays/{handle}`, or the given name.
  std::string name() const;

  // Type and shape. Waits until the daemon has accepted the producing operation, not until its end.
  Result<ArraySpec> Spec(const CallOptions& options = {}) const;
  // Waits until the content is ready; returns the array's error if its operation failed.
  Result<void> Wait(const CallOptions& options = {}) const;
  // Waits for the work. FAILED_PRECONDITION unless the operation was given
  // ComputeOptions::timeline.
  Result<stride::Timeline> Timeline(const CallOptions& options = {}) const;
  // The daemon's present description of the array.
  Result<ArrayInfo> Describe(const CallOptions& options = {}) const;

  const std::shared_ptr<internal::ArrayState>& state() const { return state_; }

 private:
  std::shared_ptr<internal::ArrayState> state_;
};

}  // namespace stride
