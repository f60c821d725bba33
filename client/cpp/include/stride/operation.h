// A description of one operation. Client::Compute runs it now, Client::Run inline,
// Client::CreateJob later.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stride/kernel.h"
#include "stride/operand.h"
#include "stride/operation_options.h"

namespace stride {

// Python's [start:stop:step] along one axis.
struct Slice {
  int32_t axis = 0;
  std::optional<int64_t> start, stop, step;
  // Selects the one element at `start` and drops the axis.
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
struct LoopSpec;
struct BranchSpec;

// A value; copies are independent. No function contacts a daemon, and only the daemon detects
// mistakes.
class Operation {
 public:
  struct Impl;

  // A NumPy ufunc by name. `data_type`: type of computation and result; unspecified: NumPy's
  // promotion.
  static Operation Ufunc(std::string_view function, const std::vector<Operand>& inputs,
                         DataType data_type = DataType::kUnspecified);
  static Operation Ufunc(std::string_view function, const std::vector<Operand>& inputs,
                         const UfuncOptions& options);
  // A text such as `cos(x)**2 + sin(x)**2`, compiled into one fused kernel.
  static Operation Expression(std::string_view text, const std::map<std::string, Operand>& inputs,
                              DataType data_type = DataType::kUnspecified);
  static Operation Reduce(Reduction function, const Operand& input,
                          const ReduceOptions& options = {});
  // Reduces the elements of an expression as they are computed, without an array of them. The
  // result has the same bits as a reduction of that array. `where` is not supported.
  static Operation Reduce(Reduction function, std::string_view text,
                          const std::map<std::string, Operand>& inputs,
                          const ReduceOptions& options = {});
  // By a ufunc of two inputs, or by a client-defined reduction, which may take several.
  static Operation Reduce(std::string_view function, const std::vector<Operand>& inputs,
                          const ReduceOptions& options = {});
  // Sums and result in `data_type`, by default NumPy's common type of both.
  static Operation Matmul(const Operand& left, const Operand& right,
                          DataType data_type = DataType::kUnspecified);
  static Operation Kernel(const KernelOptions& options);
  static Operation Full(const ArraySpec& spec, const Operand& value);
  static Operation Zeros(const ArraySpec& spec);
  // An array of undefined values, for operations that overwrite all of it.
  static Operation Empty(const ArraySpec& spec);
  static Operation Arange(const Operand& start, const Operand& stop, const Operand& step,
                          DataType data_type = DataType::kUnspecified);
  static Operation Linspace(const Operand& start, const Operand& stop, int64_t count,
                            bool exclude_endpoint = false,
                            DataType data_type = DataType::kUnspecified);
  // A contiguous copy; `data_type` converts it, and OnDevice sets its device.
  static Operation Copy(const Operand& input, DataType data_type = DataType::kUnspecified);
  // Moves the buffer's only replica to the device of OnDevice.
  static Operation Move(const Operand& input);
  static Operation View(const Operand& input, const ViewSteps& steps);
  // Replays a program (program.h); its inputs are arrays.
  static Operation Call(const Program& program, const std::vector<Operand>& inputs);
  // Only within a program (program.h). Results of a loop: the carried arrays, then the stacked
  // ones; of a branch: those of the selected body.
  static Operation Loop(const LoopSpec& loop);
  static Operation Branch(const BranchSpec& branch);

  // --- methods of ufuncs --- Running results along one axis: cumulative sums with `add`.
  static Operation Accumulate(std::string_view function, const Operand& input,
                              const AccumulateOptions& options = {});
  static Operation ReduceAt(std::string_view function, const Operand& input, const Operand& indices,
                            int32_t axis = 0, DataType data_type = DataType::kUnspecified);
  static Operation Outer(std::string_view function, const Operand& left, const Operand& right,
                         DataType data_type = DataType::kUnspecified);
  // In place, with ToExisting: once per element of the indices.
  static Operation ApplyAt(std::string_view function, const Operand& values,
                           const std::vector<Operand>& indices, const IndexOptions& options = {});
  // `vecdot`, `matvec`, `vecmat`, `matmul`, or a client-defined function.
  static Operation Gufunc(std::string_view function, const std::vector<Operand>& inputs,
                          const GufuncOptions& options = {});

  // --- indices, order, counts --- Elements by integer arrays, one for each axis from options.axis
  // on.
  static Operation Gather(const Operand& input, const std::vector<Operand>& indices,
                          const IndexOptions& options = {});
  // In place, with ToExisting.
  static Operation Scatter(const Operand& values, const std::vector<Operand>& indices,
                           const IndexOptions& options = {});
  // `count`: number of true elements of the mask, as Reduction::kCountNonzero returns.
  static Operation Compress(const Operand& input, const Operand& mask, int64_t count,
                            int32_t axis = 0);
  // One int64 array for each of the input's `rank` axes.
  static Operation Nonzero(const Operand& input, int64_t count, int rank);
  static Operation Sort(const Operand& input, const SortOptions& options = {});
  static Operation SearchSorted(const Operand& sorted, const Operand& values, bool right = false);
  // Elements at these indices of the sorted input, without a full sort: medians and percentiles.
  // `ranks`: integers, along one axis or for each slice.
  static Operation Select(const Operand& input, const Operand& ranks,
                          std::optional<int32_t> axis = std::nullopt);
  // A permutation with the sorted input's elements at `kth`, smaller ones before and larger ones
  // after.
  static Operation Partition(const Operand& input, const std::vector<int64_t>& kth,
                             const PartitionOptions& options = {});
  // Values and their indices (int64).
  static Operation TopK(const Operand& input, int64_t k, const TopKOptions& options = {});
  static Operation Histogram(const Operand& input, const UniformBins& bins);
  static Operation Histogram(const Operand& input, const UniformBins& bins, const Operand& weights);
  static Operation Histogram(const Operand& input, const Operand& edges);
  static Operation Histogram(const Operand& input, const Operand& edges, const Operand& weights);
  // Group-by: sums with `add`.
  static Operation GroupReduce(std::string_view function, const Operand& values,
                               const Operand& groups, int64_t num_groups,
                               const GroupReduceOptions& options = {});

  // --- interpolation, sums of products --- Values at `input`, linear between the values at the
  // ascending `known`.
  static Operation Interpolate(const Operand& input, const Operand& known, const Operand& values,
                               const InterpolateOptions& options = {});
  static Operation Correlate(const Operand& left, const Operand& right,
                             CorrelateMode mode = CorrelateMode::kValid);
  static Operation Convolve(const Operand& left, const Operand& right,
                            CorrelateMode mode = CorrelateMode::kFull);

  // --- linear algebra, on matrices in the last two axes ---
  static Operation Cholesky(const Operand& matrix, const LinalgOptions& options = {});
  static Operation Qr(const Operand& matrix, const LinalgOptions& options = {});   // Q, R
  static Operation Svd(const Operand& matrix, const LinalgOptions& options = {});  // U, S, Vh
  static Operation Eigh(const Operand& matrix,
                        const LinalgOptions& options = {});  // values, vectors
  static Operation Eig(const Operand& matrix,
                       const LinalgOptions& options = {});  // values, vectors
  static Operation Inverse(const Operand& matrix);
  static Operation Solve(const Operand& matrix, const Operand& right);
  static Operation Lu(const Operand& matrix);  // L and U in one matrix, pivots

  // --- Fourier transforms ---
  static Operation Fft(const Operand& input, const FftOptions& options = {});
  static Operation InverseFft(const Operand& input, const FftOptions& options = {});
  static Operation RealFft(const Operand& input, const FftOptions& options = {});
  static Operation InverseRealFft(const Operand& input, const FftOptions& options = {});

  static Operation Random(const ArraySpec& spec, const RandomStream& stream,
                          const Distribution& distribution);

  Operation(const Operation& other);
  Operation& operator=(const Operation& other);
  Operation(Operation&&) noexcept;
  Operation& operator=(Operation&&) noexcept;
  ~Operation();

  // Runs on this device, such as `devices/cpu:0`, instead of the one expected to finish first.
  Operation& OnDevice(std::string_view device);
  // -10 to 10: runs before waiting operations of the tenant with lower priority on the same device.
  // 0 within a job: the job's.
  Operation& WithPriority(int priority);
  // Destinations of results, one call for each, in order. Without any, Client chooses handles for
  // all.
  Operation& ToName(std::string_view name);   // creates a named array
  Operation& ToJobHandle(uint64_t handle);    // for later operations of the same job
  Operation& ToExisting(const Array& array);  // overwrites it, like NumPy's out=

  // For a copy or a creation: spreads the first result over devices. Call after ToName. A copy of a
  // spread array without this ends on one device.
  Operation& Spread(const Sharding& sharding);

  // Number of results.
  int num_outputs() const;
  const Impl& impl() const { return *impl_; }

 private:
  Operation();
  std::unique_ptr<Impl> impl_;
};

}  // namespace stride
