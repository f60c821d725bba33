#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/ops/plan.h"
#include "server/wire/plan.pb.h"

namespace stride::ops {

// A strided part of a buffer, as runs of contiguous bytes.
struct IndexBox {
  int64_t offset = 0;  // bytes from the start of the buffer to the first run
  int64_t run_bytes = 0;
  std::vector<int64_t> extents, strides;  // runs, outermost first; strides in bytes, > 0

  int64_t num_runs() const;
  int64_t num_bytes() const { return num_runs() * run_bytes; }
  bool operator==(const IndexBox&) const = default;
};

// Plans the part of a creation that computes the elements [first, first + count) in C order, into
// the contiguous array `output`. Its elements equal the whole array's bit for bit. nullopt unless
// the plan creates one new array without inputs.
std::optional<Plan> PartOfCreation(const Plan& plan, int64_t first, const ArrayInfo& output);

// A launch on parts of the operation's arrays. Each part is a small buffer that holds the runs of
// its region contiguously; the caller provides the buffers.
struct Piece {
  enum class Role {
    kResult,   // writes a part of the operation's output
    kPartial,  // writes one more partial result of a reduction
    kCombine,  // combines all partial results since the last one into a part of the output
  };
  struct Source {
    int input = 0;  // input of the operation
    IndexBox region;
  };
  Role role = Role::kResult;
  // Slots are as in any plan: input i is sources[i], then the output. For kCombine, input 0 holds
  // the partial results.
  Plan plan;
  std::vector<Source> sources;
  int64_t output_bytes = 0;  // size of the piece's output buffer
  IndexBox output;           // in the operation's output; unused for kPartial
  // The output's region has gaps between elements: the buffer must start with the region's current
  // bytes.
  bool keeps_rest = false;
};

// Cuts a planned operation into pieces that need little memory each.
// - Elementwise loops, fills and copies are cut along the outermost axis that fits, and within its
//   single indices along the next one. Every element is equal bit for bit.
// - Reductions are cut along kept axes where their memory suffices. Otherwise they are cut along
//   reduced axes, and a last piece combines the partial results in the accumulator's type.
// - An operand without the cut axis (broadcast) is in every piece as a whole, as the same region.
//
// Pure and immutable.
class Pieces {
 public:
  // `output_slot` is the number of the operation's inputs. Each piece's sources and output take at
  // most `max_bytes`. An UNIMPLEMENTED error names what cannot be cut.
  static absl::StatusOr<Pieces> Cut(const Plan& plan, int output_slot, int64_t max_bytes);

  int64_t size() const;
  Piece At(int64_t index) const;

 private:
  enum class Kind { kLoop, kReduce, kCopy, kFill };
  struct Operand {
    int slot = 0;
    int64_t item = 1;  // in bytes
    int64_t offset = 0;
    std::vector<int64_t> strides;  // along the axes; the output has none along reduced axes
  };
  struct Part;

  absl::Status Read(const Plan& plan, int output_slot);
  absl::Status Choose(int64_t max_bytes);
  bool Fits(absl::Span<const int64_t> chunk, int64_t max_bytes) const;
  bool HasLongRuns(absl::Span<const int64_t> chunk, int64_t least) const;
  bool ChunkAlong(absl::Span<const size_t> order, int64_t max_bytes, int64_t least_run);
  static Part PartOf(const Operand& operand, absl::Span<const int64_t> begin,
                     absl::Span<const int64_t> count);
  int64_t NumChunks(size_t axis) const;
  int64_t NumAlong(size_t from, size_t to) const;
  void FillLoop(absl::Span<const int64_t> begin, absl::Span<const int64_t> count,
                const std::vector<Part>& inputs, const Part& output, Plan* plan) const;
  void FillReduce(absl::Span<const int64_t> count, const std::vector<Part>& inputs,
                  const Part& output, bool partial, Plan* plan) const;
  Piece Combine(absl::Span<const int64_t> begin, absl::Span<const int64_t> count) const;

  Kind kind_ = Kind::kLoop;
  wire::Code code_;
  wire::Task task_;
  double bytes_ = 0, flops_ = 0;  // work of the whole operation
  std::vector<int64_t> extents_;  // all axes, kept ones first
  size_t num_kept_ = 0;           // number of kept axes; all axes for loops
  std::vector<Operand> inputs_;   // in the launch's order
  Operand output_;                // strides along the kept axes
  bool uses_index_ = false;       // elements depend on their index in C order
  std::vector<int64_t> chunk_;    // extents of a piece; the last pieces may be smaller
};

}  // namespace stride::ops
