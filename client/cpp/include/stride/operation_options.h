// What operations leave to choose. Members that are not set mean what NumPy means by leaving them
// out.
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
  DataType data_type = DataType::kUnspecified;  // computes in and returns this type
  Casting casting = Casting::kUnspecified;      // of inputs and of the result; same kind
  std::optional<Operand> where;  // bool; elements where it is false are left as they are
  int num_outputs = 0;           // of a client's own function with several results
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
  kVar,  // of the values' distances from their mean, divided by the number less `correction`
  kStd   // its square root
};
std::optional<Reduction> ParseReduction(std::string_view name);

struct ReduceOptions {
  std::vector<int32_t> axes;  // empty: all
  bool keep_dims = false;
  DataType data_type = DataType::kUnspecified;  // of accumulator and result; unspecified: NumPy's
  std::optional<Operand> initial;               // a number that takes part as one more element does
  std::optional<Operand> where;                 // bool; elements where it is false take no part
  bool skip_nan = false;                        // nansum, nanmean, ...: NaN take no part either
  double correction = 0;                        // of kVar and kStd: NumPy's ddof
};

struct AccumulateOptions {
  std::optional<int32_t> axis;   // may be unset for one axis alone
  bool include_initial = false;  // one longer, beginning with the function's identity
  bool reverse = false;          // from the last element to the first
  bool exclusive = false;        // element i combines those before it
  DataType data_type = DataType::kUnspecified;
};

// What an index outside its axis means.
enum class IndexMode { kUnspecified, kRaise, kWrap, kClip };

struct IndexOptions {
  int32_t axis = 0;  // of the first index array
  IndexMode mode = IndexMode::kUnspecified;
  bool along_axis = false;                  // take_along_axis: one index array of the input's rank
  Casting casting = Casting::kUnspecified;  // of what is scattered; unspecified: unsafe
};

struct SortOptions {
  std::optional<int32_t> axis;  // unset: the last
  bool descending = false;
  bool indices = false;  // argsort
  // With `indices`, lexsort: what is equal in the input is ordered by the first of these, and so
  // on.
  std::vector<Operand> more_keys;
};

struct PartitionOptions {
  std::optional<int32_t> axis;  // unset: the last
  bool indices = false;         // argpartition
};

struct InterpolateOptions {
  // Numbers: the values before the first known place and after the last; unset: those there.
  std::optional<Operand> left, right;
};

// Where two rows of a sum of products overlap: as a whole; as long as the longer one; anywhere.
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
  // For each input, then each output, where the layout's axes are; empty: the last ones.
  std::vector<std::vector<int32_t>> axes;
  std::optional<int32_t> axis;
  bool keep_dims = false;
};

struct LinalgOptions {
  bool upper = false;        // Cholesky, eigh: the upper triangle
  bool full = false;         // QR, SVD: square orthogonal factors
  bool values_only = false;  // R, S or the eigenvalues alone
};

// Where a transform's sum is divided by its length.
enum class FftNorm { kUnspecified, kBackward, kOrtho, kForward };

struct FftOptions {
  std::vector<int32_t> axes;     // empty: all
  std::vector<int64_t> lengths;  // along each of them; empty: the input's
  FftNorm norm = FftNorm::kUnspecified;
};

// A stream of random numbers: element i is a function of these and i alone, on every device.
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
