#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <utility>

#include "server/worker/codegen/group_shape.h"
#include "server/worker/codegen/launch_abi.h"
#include "server/worker/codegen/order_shape.h"
#include "server/worker/codegen/routine_planner.h"

// Splits each routine into passes. The sizes are those of the algorithms in routines/.
namespace stride::codegen {
namespace {

using Code = wire::RoutineCode;

constexpr int64_t kMaxChunks = 1024;  // chunks whose totals one thread sums
// With fewer rows, a GPU's threads or a processor's cores have too little work.
constexpr int64_t kEnoughRowsCuda = 8192;
constexpr int64_t kEnoughRowsCpu = 64;
constexpr int64_t kLeastTiled = 512;  // row length from which a block handles each of many rows
constexpr int64_t kTilesGroup = 32;   // kGroup in tiles.h
constexpr int64_t kMarksTile = 4096, kMarksWarps = 8, kMarksChunks = 2048;  // as in marks.h
// Bounds of columns.h: threads that occupy a GPU, fewest elements per chunk, chunks of a row that
// one thread combines, and rows from which on threads read whole sectors.
constexpr int64_t kColumnThreads = 262144, kLeastColumnChunk = 16, kMostColumnChunks = 256;
constexpr int64_t kLeastColumns = 512;

constexpr int64_t kSearchedTogether = 64;  // kTogether in search.h
constexpr int64_t kScatterOrders = 2;      // kOrders in scatter.h

class Planner : public RoutinePlanner {
 public:
  using RoutinePlanner::RoutinePlanner;

  RoutineShape Plan() {
    switch (launch_.routine()) {
      case Code::ROUTINE_ACCUMULATE:
        Accumulate();
        break;
      case Code::ROUTINE_GATHER:
        shape_.may_fault = true;
        Add(0, count_);
        break;
      case Code::ROUTINE_SCATTER:
        Scatter();
        break;
      case Code::ROUTINE_COMPRESS:
        Compress();
        break;
      case Code::ROUTINE_CORRELATE:
        Add(0, DivideUp(last().own_extents(0), is_cuda() ? 4 : 32));
        break;
      case Code::ROUTINE_SEARCH:
        Add(0, is_cuda() ? count_ : DivideUp(count_, kSearchedTogether));
        break;
      case Code::ROUTINE_INTERPOLATE:
      case Code::ROUTINE_GUFUNC:
        Add(0, count_);
        break;
      case Code::ROUTINE_FOLD:
        shape_.may_fault = launch_.options(0) != 0;
        Add(0, count_);
        break;
      default:
        break;
    }
    return std::move(shape_);
  }

 private:
  // Option 1: any grouping is allowed.
  void Accumulate() {
    if (count_ == 0) return;
    const int64_t n = operand(0).own_extents(0);
    if (is_cuda()) return AccumulateTiles(n);
    if (launch_.options(1) == 0 || count_ >= kEnoughRowsCpu || n <= kBlockElements)
      return Add(0, count_);
    const int64_t wanted = std::max<int64_t>(kMaxChunks / count_, 1);
    const int64_t chunk = DivideUp(DivideUp(n, wanted), kBlockElements) * kBlockElements;
    const int64_t chunks = DivideUp(n, chunk);
    if (chunks > 1) {
      AddScratch(count_ * chunks * 32);  // a complex128 and a bool
      Add(1, count_ * chunks, {chunk, chunks});
      Add(2, count_, {chunk, chunks});
    }
    Add(3, count_ * chunks, {chunk, chunks});
  }

  // kTile in tiles.h.
  int64_t AccumulateTile() const {
    const int64_t item = ItemSize(static_cast<DType>(last().operand().dtype()));
    return kRoutineThreads * (item > 8 ? 4 : item > 4 ? 8 : 16);
  }

  void AccumulateTiles(int64_t n) {
    // Threads that each handle a row do well where neighbouring rows are adjacent in memory.
    const bool along = std::abs(operand(0).own_strides(0)) ==
                       ItemSize(static_cast<DType>(operand(0).operand().dtype()));
    const bool many = count_ >= kEnoughRowsCuda && !(along && n >= kLeastTiled);
    const bool can_cut = launch_.options(1) != 0 && n > 64;
    if (can_cut && !along && count_ >= kLeastColumns && 2 * count_ <= kColumnThreads)
      return AccumulateColumns(n);
    if (!can_cut || many) return Add(0, count_);
    const int64_t tiles = DivideUp(n, AccumulateTile()), groups = DivideUp(tiles, kTilesGroup);
    if (tiles > 1) {
      const int64_t sums = tiles + groups + DivideUp(groups, kTilesGroup);
      const int64_t words = 1 + count_ * sums * 4;  // complex128 sums
      AddScratch(words * 8);
      Add(1, words);
    }
    Add(2, count_ * tiles, {0, tiles});
  }

  void AccumulateColumns(int64_t n) {
    const int64_t wanted = std::min(kColumnThreads / count_, kMostColumnChunks);
    const int64_t chunk = std::max(DivideUp(n, wanted), kLeastColumnChunk);
    const int64_t chunks = DivideUp(n, chunk);
    AddScratch(count_ * chunks * 16);  // complex128 partial results
    Add(3, count_ * chunks, {chunk, chunks});
    Add(4, count_, {chunk, chunks});
    Add(5, count_ * chunks, {chunk, chunks});
  }

  void Scatter() {
    shape_.may_fault = true;
    if (count_ == 0) return;
    // Upper bounds of different targets and of entries in the table: those of the indices alone,
    // unless the indices also vary along other axes.
    const bool along = launch_.options(1) != 0;
    int64_t keys = 1, elsewhere = 1, step = 0;
    for (int axis = 0; axis < launch_.extents_size(); ++axis) {
      const bool of_indices = last().operand().strides(axis) == 0;
      if (along || of_indices) keys *= launch_.extents(axis);
      if (of_indices) continue;
      elsewhere *= launch_.extents(axis);
      step = std::abs(last().operand().strides(axis));
    }
    // One thread that keeps the order is faster than a table when other threads would have no work.
    if (!is_cuda() && elsewhere == 1) {
      Add(0, count_);
      return Add(4, 1);
    }
    const int64_t targets = Product(last().own_extents()) * (along ? elsewhere : 1);
    const bool direct = targets / 4 <= keys;
    if (is_cuda() && targets <= keys) {
      const int own = last().own_extents_size() - 1;
      const bool targets_first =
          elsewhere == 1 || (own >= 0 && std::abs(last().own_strides(own)) < step);
      const std::array<int64_t, 4> arguments = {targets, kScatterOrders, elsewhere, targets_first};
      AddScratch(targets * 8);
      Add(1, targets, arguments);
      Add(2, count_, arguments);
      return Add(5, along ? targets : targets * elsewhere, arguments);
    }
    Add(0, count_);
    const int64_t slots =
        direct ? targets : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(keys) * 2));
    AddScratch(slots * 16);
    Add(1, slots, {slots, direct});
    Add(2, count_, {slots, direct});
    Add(3, count_, {slots, direct});
  }

  // Whether the elements along an operand's own axes have no gaps, in C order.
  static bool IsFlat(const wire::RoutineOperand& operand) {
    int64_t stride = ItemSize(static_cast<DType>(operand.operand().dtype()));
    for (int axis = operand.own_extents_size() - 1; axis >= 0; --axis) {
      if (operand.own_extents(axis) != 1 && operand.own_strides(axis) != stride) return false;
      stride *= operand.own_extents(axis);
    }
    return true;
  }

  void Compress() {
    shape_.may_fault = true;
    const int64_t n = Product(operand(0).own_extents()), count = last().own_extents(0);
    const bool indices = launch_.options(0) != 0;
    if (is_cuda()) {
      const int64_t tiles = std::max<int64_t>(DivideUp(n, kMarksTile), 1);
      const int64_t chunk = DivideUp(DivideUp(tiles, kMarksChunks), kMarksWarps) * kMarksWarps;
      const int64_t flat = (IsFlat(operand(0)) ? 1 : 0) | (IsFlat(operand(1)) ? 2 : 0);
      const bool listed = !indices && count_ != 1;
      AddScratch((tiles + kMarksChunks + 1) / 2 * 8 + (listed ? count * 8 : 0));
      Add(0, DivideUp(tiles, chunk), {chunk, tiles, flat});
      Add(1, tiles, {chunk, tiles, flat});
      if (listed) Add(2, count * count_, {chunk, tiles, flat});
      return;
    }
    const int64_t chunk =
        DivideUp(std::max<int64_t>(DivideUp(n, kMaxChunks), 1), kBlockElements) * kBlockElements;
    const int64_t chunks = DivideUp(n, chunk);
    AddScratch((chunks + count) * 8);
    Add(0, chunks, {chunk, chunks});
    Add(1, 1, {chunk, chunks});
    Add(2, chunks, {chunk, chunks});
    if (!indices) Add(3, count * count_, {chunk, chunks});
  }
};

}  // namespace

RoutineShape PlanRoutine(const wire::RoutineLaunch& launch, const RoutineTarget& target) {
  switch (launch.routine()) {
    case Code::ROUTINE_SORT:
    case Code::ROUTINE_TOP_K:
    case Code::ROUTINE_SELECT:
    case Code::ROUTINE_PARTITION:
      return PlanOrder(launch, target);
    case Code::ROUTINE_GROUP_REDUCE:
    case Code::ROUTINE_HISTOGRAM:
    case Code::ROUTINE_APPLY_AT:
      return PlanGroups(launch, target);
    default:
      return Planner(launch, target).Plan();
  }
}

}  // namespace stride::codegen
