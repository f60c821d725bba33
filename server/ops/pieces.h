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

// A part of a buffer, run by run.
struct Region {
  int64_t offset = 0;  // bytes from the buffer's start to the first run
  int64_t run_bytes = 0;
  std::vector<int64_t> extents, strides;  // of the runs, outermost first; strides in bytes, above 0

  int64_t num_runs() const;
  int64_t num_bytes() const { return num_runs() * run_bytes; }
  bool operator==(const Region&) const = default;
};

// The part of a planned creation that makes the elements [first, first + count) of the C order, as
// an array of its own, `output`, C-contiguous: with the bits that the whole has there. Null where
// the plan is none of a new array made from nothing.
std::optional<Plan> PartOfCreation(const Plan& plan, int64_t first, const ArrayInfo& output);

// A launch on parts of the operation's arrays, each part a small buffer of its own with the bytes
// of its region one run after another. What the buffers are is the caller's business.
struct Piece {
  enum class Role {
    kResult,   // its output is a part of the operation's
    kPartial,  // its output is one more partial result of a reduction
    kCombine,  // makes a part of the operation's output from all partial results since the last one
  };
  struct Source {
    int input = 0;  // of the operation
    Region region;
  };
  Role role = Role::kResult;
  // Slots as in any plan: input i is sources[i], or, for kCombine, input 0 is the partial results;
  // then the output.
  Plan plan;
  std::vector<Source> sources;
  int64_t output_bytes = 0;  // of the piece's output buffer
  Region output;             // of the operation's output; unused for kPartial
  // The output's region has bytes between the elements: the buffer has to begin with what is there.
  bool keeps_rest = false;
};

// Cuts a planned operation into pieces that need little memory each. Elementwise loops, fills,
// copies: along the outermost axis that does, and within one index of it along the next where that
// is still too much; every element is computed as by the whole, bit for bit. Reductions: along axes
// that stay where their memory allows, else along reduced ones, which gives partial results that
// are combined at the end, in the accumulator's type. Operands that do not go along the axis that
// is cut (broadcast) are in every piece as a whole, as the same region.
//
// Pure and immutable.
class Pieces {
 public:
  // `output_slot` is the number of the operation's inputs. Each piece's sources and output take at
  // most `max_bytes`. An error is UNIMPLEMENTED and says, for a person, what cannot be cut.
  static absl::StatusOr<Pieces> Cut(const Plan& plan, int output_slot, int64_t max_bytes);

  int64_t size() const;
  Piece At(int64_t index) const;

 private:
  enum class Kind { kLoop, kReduce, kCopy, kFill };
  struct Operand {
    int slot = 0;
    int64_t item = 1;  // bytes
    int64_t offset = 0;
    std::vector<int64_t> strides;  // along the axes; none along reduced ones for the output
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
  double bytes_ = 0, flops_ = 0;  // of the whole
  std::vector<int64_t> extents_;  // of all axes; those that stay come first
  size_t num_kept_ = 0;           // axes that stay; loops: all
  std::vector<Operand> inputs_;   // in the launch's order
  Operand output_;                // strides along the axes that stay
  bool uses_index_ = false;       // elements depend on their place in C order
  std::vector<int64_t> chunk_;    // extents of a piece, but for the last ones
};

}  // namespace stride::ops
