// One piece of work, described and not yet given to a daemon: Client::Compute runs it now,
// Client::Run inline, Client::CreateJob later.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stride/kernel.h"
#include "stride/operand.h"

namespace stride {

enum class Reduction { kSum = 1, kProd, kMin, kMax, kMean, kAny, kAll, kArgmin, kArgmax, kNorm };
std::optional<Reduction> ParseReduction(std::string_view name);

struct ReduceOptions {
  std::vector<int32_t> axes;  // empty: all
  bool keep_dims = false;
  DataType data_type = DataType::kUnspecified;  // of accumulator and result; unspecified: NumPy's
};

// Python's [start:stop:step] along one axis.
struct Slice {
  int32_t axis = 0;
  std::optional<int64_t> start, stop, step;
  // Takes the one element at `start` and drops the axis.
  bool index = false;
};

// A chain of views, applied in order.
class ViewSteps {
 public:
  struct Impl;
  ViewSteps();
  ViewSteps& Slice(const stride::Slice& slice);
  ViewSteps& Index(int32_t axis, int64_t at);
  ViewSteps& Transpose(std::vector<int32_t> axes = {});  // empty: reversed
  ViewSteps& Reshape(std::vector<int64_t> shape);        // one extent may be -1
  ViewSteps& Broadcast(std::vector<int64_t> shape);
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

struct Program;

// A value; copies are independent. Nothing here talks to a daemon, and mistakes are found by the
// daemon.
class Operation {
 public:
  struct Impl;

  // A NumPy ufunc by name. `data_type`: computes in and returns this type; unspecified: NumPy's
  // promotion.
  static Operation Ufunc(std::string_view function, const std::vector<Operand>& inputs,
                         DataType data_type = DataType::kUnspecified);
  // A text such as `cos(x)**2 + sin(x)**2`, compiled into one fused kernel.
  static Operation Expression(std::string_view text, const std::map<std::string, Operand>& inputs,
                              DataType data_type = DataType::kUnspecified);
  static Operation Reduce(Reduction function, const Operand& input,
                          const ReduceOptions& options = {});
  static Operation Matmul(const Operand& left, const Operand& right);
  static Operation Kernel(const KernelOptions& options);
  static Operation Full(const ArraySpec& spec, const Operand& value);
  static Operation Zeros(const ArraySpec& spec);
  static Operation Arange(const Operand& start, const Operand& stop, const Operand& step,
                          DataType data_type = DataType::kUnspecified);
  static Operation Linspace(const Operand& start, const Operand& stop, int64_t count,
                            bool exclude_endpoint = false,
                            DataType data_type = DataType::kUnspecified);
  // A contiguous copy, in another type when `data_type` is given, on another device with OnDevice.
  static Operation Copy(const Operand& input, DataType data_type = DataType::kUnspecified);
  // Gives the buffer's only replica to the device of OnDevice.
  static Operation Move(const Operand& input);
  static Operation View(const Operand& input, const ViewSteps& steps);
  // Replays a program (program.h); its inputs are arrays.
  static Operation Call(const Program& program, const std::vector<Operand>& inputs);

  Operation(const Operation& other);
  Operation& operator=(const Operation& other);
  Operation(Operation&&) noexcept;
  Operation& operator=(Operation&&) noexcept;
  ~Operation();

  // Runs on this device, such as `devices/cpu:0`, instead of the one expected to finish first.
  Operation& OnDevice(std::string_view device);
  // -10 to 10: before the tenant's operations of lower priority that wait for the same device. 0
  // within a job: the job's.
  Operation& WithPriority(int priority);
  // Where results go, one call for each, in order. Without any, Client chooses handles for all.
  Operation& ToName(std::string_view name);   // creates a named array
  Operation& ToJobHandle(uint64_t handle);    // for later operations of the same job
  Operation& ToExisting(const Array& array);  // overwrites it, as NumPy's out=

  // Results that it makes.
  int num_outputs() const;
  const Impl& impl() const { return *impl_; }

 private:
  Operation();
  std::unique_ptr<Impl> impl_;
};

}  // namespace stride
