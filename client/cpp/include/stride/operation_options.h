// Options of operations. Unset members have NumPy's defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "stride/operand.h"

namespace stride {

// NumPy's casting rules.
enum class Casting { kUnspecified, kNo, kEquiv, kSafe, kSameKind, kUnsafe };

struct UfuncOptions {
  DataType data_type = DataType::kUnspecified;  // type of computation and result
  Casting casting = Casting::kUnspecified;      // for inputs and result; unspecified: kSameKind
  std::optional<Operand> where;  // bool; elements where it is false are left unchanged
  int num_outputs = 0;           // set for a client-defined function with several results
};

enum class Reduction {
  kSum = 1,
  kProd,
  kMin,
  kMax,
  kMean,
  kAny,
  kAll,
  kArgmin,
  kArgmax,
  kNorm,
  kCountNonzero,
  kVar,  // sum of squared distances from the mean, divided by n - `correction`
  kStd   // square root of kVar
};
std::optional<Reduction> ParseReduction(std::string_view name);

struct ReduceOptions {
  std::vector<int32_t> axes;  // empty: all
  bool keep_dims = false;
  // type of accumulator and result; unspecified: NumPy's
  DataType data_type = DataType::kUnspecified;
  std::optional<Operand> initial;  // a number, combined like one more element
  std::optional<Operand> where;    // bool; elements where it is false are ignored
  bool skip_nan = false;           // nansum, nanmean, ...: NaN are ignored too
  double correction = 0;           // kVar and kStd: NumPy's ddof
};

struct AccumulateOptions {
  std::optional<int32_t> axis;   // may be unset if there is one axis
  bool include_initial = false;  // one longer, beginning with the function's identity
  bool reverse = false;          // from the last element to the first
  bool exclusive = false;        // element i combines only earlier elements
  DataType data_type = DataType::kUnspecified;
};

// Meaning of an index outside its axis.
enum class IndexMode { kUnspecified, kRaise, kWrap, kClip };

struct IndexOptions {
  int32_t axis = 0;  // axis of the first index array
  IndexMode mode = IndexMode::kUnspecified;
  bool along_axis = false;                  // take_along_axis: one index array of the input's rank
  Casting casting = Casting::kUnspecified;  // for scattered values; unspecified: unsafe
};

struct SortOptions {
  std::optional<int32_t> axis;  // unset: the last
  bool descending = false;
  bool indices = false;  // argsort
  // With `indices`, lexsort: elements that are equal in the input are ordered by the first of
  // these, and so on.
  std::vector<Operand> more_keys;
};

struct PartitionOptions {
  std::optional<int32_t> axis;  // unset: the last
  bool indices = false;         // argpartition
};

struct InterpolateOptions {
  // Numbers: results before the first known position and after the last; unset: the values there.
  std::optional<Operand> left, right;
};

// Overlap of two rows in a sum of products: complete, centred with the longer row's length, or any.
enum class CorrelateMode { kValid = 1, kSame, kFull };

struct TopKOptions {
  std::optional<int32_t> axis;  // unset: the last
  bool smallest = false;
};

// Bins of equal width from low to high.
struct UniformBins {
  int64_t count = 10;
  double low = 0, high = 1;
};

struct GroupReduceOptions {
  int32_t axis = 0;
  DataType data_type = DataType::kUnspecified;
};

struct GufuncOptions {
  DataType data_type = DataType::kUnspecified;
  // For each input, then each output: positions of the layout's axes; empty: the last ones.
  std::vector<std::vector<int32_t>> axes;
  std::optional<int32_t> axis;
  bool keep_dims = false;
};

struct LinalgOptions {
  bool upper = false;        // Cholesky, eigh: the upper triangle
  bool full = false;         // QR, SVD: square orthogonal factors
  bool values_only = false;  // R, S or the eigenvalues alone
};

// Scaling of a transform, as NumPy's `norm`.
enum class FftNorm { kUnspecified, kBackward, kOrtho, kForward };

struct FftOptions {
  std::vector<int32_t> axes;     // empty: all
  std::vector<int64_t> lengths;  // along each of `axes`; empty: the input's
  FftNorm norm = FftNorm::kUnspecified;
};

// A stream of random numbers: element i is a function of these members and i, on every device.
struct RandomStream {
  enum class Generator { kUnspecified, kPhilox4x32, kThreefry2x32 };
  uint64_t key = 0;
  uint64_t counter = 0;
  uint64_t counter_high = 0;  // Philox
  Generator generator = Generator::kUnspecified;
};
struct RandomBits {};
struct Uniform {
  double low = 0, high = 1;
};
struct Normal {
  double mean = 0, deviation = 1;
};
struct RandomIntegers {
  int64_t low = 0, high = 0;  // [low, high)
};
using Distribution = std::variant<RandomBits, Uniform, Normal, RandomIntegers>;

}  // namespace stride
