// Arrays that the daemon holds, as a client sees them.
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

// Elements, and bytes in C order; nothing when an extent is negative or the product does not fit 63
// bits.
std::optional<int64_t> NumElements(const ArraySpec& spec);
std::optional<int64_t> SizeBytes(const ArraySpec& spec);

// `float32[3,4]`
std::string ToString(const ArraySpec& spec);

struct ArrayInfo {
  enum class State { kUnspecified, kPending, kReady, kFailed };
  std::string name;
  ArraySpec spec;
  // Bytes from one element to the next along each axis.
  std::vector<int64_t> strides;
  int64_t size_bytes = 0;
  State state = State::kUnspecified;
  // With kFailed.
  std::optional<Error> error;
  // Devices that hold a valid copy.
  std::vector<std::string> devices;
  // Of one that is spread over them.
  std::optional<Sharding> sharding;
};

// Stands for one array of a Client's session, from the moment it is asked for: it may be used as an
// operand before it exists. An operation that fails leaves its error on its arrays, and every later
// use reports that error.
//
// Move-only. The daemon is told to forget the handle when the Array and every Operand made from it
// are gone; such releases travel in batches. An Array may outlive its Client, but is then of no
// use. Any thread may use it, one at a time.
class Array {
 public:
  // Stands for nothing; every use reports INVALID_ARGUMENT.
  Array() = default;
  explicit Array(std::shared_ptr<internal::ArrayState> state) : state_(std::move(state)) {}
  Array(Array&&) = default;
  Array& operator=(Array&&) = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  explicit operator bool() const { return state_ != nullptr; }
  // `sessions/{session}/arrays/{handle}`, or the name it was given.
  std::string name() const;

  // Type and shape. Waits until the daemon has accepted the operation that makes it, not until that
  // is done.
  Result<ArraySpec> Spec(const CallOptions& options = {}) const;
  // Waits until its content exists, or tells why it never will.
  Result<void> Wait(const CallOptions& options = {}) const;
  // Waits for the work. FAILED_PRECONDITION unless the operation was given
  // ComputeOptions::timeline.
  Result<stride::Timeline> Timeline(const CallOptions& options = {}) const;
  // What the daemon knows of it now.
  Result<ArrayInfo> Describe(const CallOptions& options = {}) const;

  const std::shared_ptr<internal::ArrayState>& state() const { return state_; }

 private:
  std::shared_ptr<internal::ArrayState> state_;
};

}  // namespace stride
