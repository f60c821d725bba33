#include "server/worker/codegen/order_shape.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <utility>

#include "server/worker/codegen/routine_planner.h"

namespace stride::codegen {
namespace {

using Code = wire::RoutineCode;

constexpr int64_t kSortTile = 1024;

// Shorter rows are merged instead of sorted by radix.h.
constexpr int64_t kLeastRadix = 4096;
constexpr int64_t kMostPartedBySort = int64_t{1} << 22;  // elements of 8 bytes

// Bounds of keyed.h: its kMergedItems and kStackItems, and the smallest tiles that a core sorts or
// searches.
constexpr int64_t kKeyedGroup = 4096, kKeyedOnStack = 8192;
constexpr int64_t kColumns = 16, kColumnBytes = 288 << 10;  // as kColumns, kColumnItems
constexpr int64_t kLeastKeyedTile = 32768, kLeastFirstsTile = 65536;

// Bounds of seek.h: ranks found at once (its kMostRanks), rows from which on each is handled by one
// block, fewest elements per core, and parts of a row that a GPU moves at once.
constexpr int64_t kMostRanks = 8;
constexpr int64_t kSeekBits = 10, kSeekFirstBits = 12, kSeekBitsCpu = 11;  // bits per digit
// sizes from which a GPU does not sort by tiles
constexpr int64_t kLeastTopSought = 32768, kFewTopRows = 64;
constexpr int64_t kEnoughSeekingCuda = 256, kEnoughSeekingCpu = 8;
constexpr int64_t kLeastSoughtCpu = 32768;
constexpr int64_t kLeastSoughtTogether = 131072;  // elements of a row that several cores share
constexpr int64_t kRunsCuda = 32768;

class OrderPlanner : public RoutinePlanner {
 public:
  using RoutinePlanner::RoutinePlanner;

  RoutineShape Plan() {
    switch (launch_.routine()) {
      case Code::ROUTINE_SORT:
        Sort();
        break;
      case Code::ROUTINE_TOP_K:
        TopK();
        break;
      case Code::ROUTINE_SELECT:
        Select();
        break;
      case Code::ROUTINE_PARTITION:
        Partition();
        break;
      default:
        break;
    }
    return std::move(shape_);
  }

 private:
  // Size of the compiled code's struct Entry; 8 bytes for the index, which may take 4 there.
  int64_t EntryBytes() const {
    const DType dtype = static_cast<DType>(operand(0).operand().dtype());
    return launch_.options(1) == 0 ? ItemSize(dtype) : DivideUp(ItemSize(dtype), 8) * 8 + 8;
  }

  int64_t KeyBits() const { return 8 * ItemSize(static_cast<DType>(operand(0).operand().dtype())); }

  // kRadixItems in keys.h.
  static int64_t KeysTile(int64_t item_bytes, bool places) {
    return kRoutineThreads * (item_bytes > 4 ? 12 : places ? 16 : 24);
  }

  bool CanRadixSort(int64_t n) const {
    // A radix sort pays for a row that fills half a tile.
    const int64_t least = std::min(kLeastRadix, KeysTile(ItemBytes(), launch_.options(1) != 0) / 2);
    return is_cuda() && n > least && n <= kMostRadix && launch_.options(3) == 0 &&
           !IsComplex(static_cast<DType>(operand(0).operand().dtype()));
  }

  // Whether a processor sorts rows of n by keys (keyed.h).
  bool CanSortByKeys(int64_t n) const {
    return !is_cuda() && n <= kMostRadix && launch_.options(3) == 0 &&
           !IsComplex(static_cast<DType>(operand(0).operand().dtype()));
  }

  // Size of keyed.h's SortItem.
  int64_t KeyedBytes() const {
    const bool wide = ItemSize(static_cast<DType>(operand(0).operand().dtype())) > 4;
    return (wide ? 8 : 4) * (launch_.options(1) != 0 ? 2 : 1);
  }

  // Number of parts of a row, enough for all threads; a power of two, no part shorter than `least`.
  int64_t RowParts(int64_t n, int64_t least) const {
    const auto threads = static_cast<uint64_t>(std::max(target_.num_threads, 1));
    const auto wanted = static_cast<int64_t>(
        std::bit_ceil(static_cast<uint64_t>(DivideUp(static_cast<int64_t>(threads), count_))));
    const auto most = static_cast<int64_t>(
        std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(n / least, 1))));
    return std::min(wanted, most);
  }

  // Whether neighbouring rows are adjacent in memory, and several fit a core's stack.
  bool AreColumns(int64_t n) const {
    const wire::RoutineOperand& input = operand(0);
    const int axis = launch_.extents_size() - 1;
    return launch_.options(2) == 0 && launch_.extents(axis) >= kColumns && n > 1 &&
           input.operand().strides(axis) == ItemBytes() &&
           std::abs(input.own_strides(0)) > ItemBytes() &&
           (n + kColumns) * kColumns * KeyedBytes() <= kColumnBytes;
  }

  void SortByKeys(int64_t n) {
    const int phase = FirstRadixPhase(launch_.routine());
    const DType dtype = static_cast<DType>(operand(0).operand().dtype());
    const int64_t width =
        DivideUp(DivideUp(n, RowParts(n, kLeastKeyedTile)), kKeyedGroup) * kKeyedGroup;
    const int64_t tiles = DivideUp(n, width), bytes = 2 * count_ * n * KeyedBytes();
    if (tiles == 1 && AreColumns(n)) return Add(phase + 7, DivideUp(count_, kColumns), {n, 1});
    if (tiles == 1) {
      if (n > kKeyedOnStack) AddScratch(bytes);
      return Add(phase, count_, {n, 1});
    }
    const bool places = launch_.options(1) != 0, rare = IsFloat(dtype) && !places;
    const bool long_places = places && ItemSize(dtype) > 4 && launch_.options(2) == 0;
    const int64_t at = DivideUp(bytes + count_ * tiles, 16) * 16;
    AddScratch(at + count_ * (long_places ? tiles * 16 : 8));
    if (long_places) Add(phase + 5, count_ * tiles, {width, tiles, 0, at});
    Add(phase, count_ * tiles, {width, tiles, 0, at});
    const int64_t groups = DivideUp(n, kKeyedGroup);
    int64_t half = 0;
    for (int64_t merged = width; merged < n; merged *= 2, half = 1 - half) {
      const bool last = merged * 2 >= n;
      if (last && rare) Add(phase + 2, count_, {1 - half, tiles, at});
      Add(phase + 1, count_ * groups, {merged, half | (last ? 2 : 0), groups});
      if (last && rare) Add(phase + 3, count_, {1 - half, tiles, at});
    }
    if (long_places) Add(phase + 6, count_ * groups, {half, tiles, groups, at});
  }

  void FirstsByKeys(int64_t n, int64_t k) {
    const int phase = FirstRadixPhase(launch_.routine()) + 4;
    const int64_t width = DivideUp(n, RowParts(n, kLeastFirstsTile)), tiles = DivideUp(n, width);
    if (tiles > 1) AddScratch(count_ * tiles * k * KeyedBytes());
    Add(phase, count_ * tiles, {width, tiles, k, 0});
    if (tiles > 1) Add(phase, count_, {width, tiles, k, 1});
  }

  // Returns the half of the scratch memory with the result, unless it is in the output.
  int64_t Sort(bool into_output = true) {
    const int64_t n = operand(0).own_extents(0);
    if (n == 0 || count_ == 0) return 0;
    const int64_t item = ItemSize(static_cast<DType>(operand(0).operand().dtype()));
    if (CanRadixSort(n)) {
      if (!into_output) AddScratch(DivideUp(count_ * n * EntryBytes(), 16) * 16);
      const bool places = launch_.options(1) != 0;
      RadixSort(count_, n, KeysTile(item, places), item, item, places ? IndexBytes() : 0, false);
      return 0;
    }
    if (into_output && CanSortByKeys(n)) {
      SortByKeys(n);
      return 0;
    }
    if (n > kSortTile) AddScratch(2 * count_ * n * EntryBytes());
    Add(0, count_ * DivideUp(n, kSortTile), {0, n <= kSortTile ? 2 : 0});
    // Items of a GPU's thread are short, so that there are enough of them.
    const int64_t group = is_cuda() ? 16 : 1024;
    int64_t half = 0;
    for (int64_t width = kSortTile; width < n; width *= 2, half = 1 - half) {
      const int64_t groups = DivideUp(n, group);
      const bool last = into_output && width * 2 >= n;
      Add(1, count_ * groups, {width, half | (last ? 2 : 0), groups, group});
    }
    return half;
  }

  void TopK() {
    const int64_t n = operand(0).own_extents(0), k = last().own_extents(0);
    if (n == 0 || count_ == 0) return;
    const bool is_complex = IsComplex(static_cast<DType>(operand(0).operand().dtype()));
    if (is_cuda() && !is_complex && n >= kLeastTopSought && k <= kSortTile && count_ <= kFewTopRows)
      return TopBySeeking(n, k);
    // Each tile must shrink.
    if (k > kSortTile / 2) {
      Sort();
      return;
    }
    if (CanSortByKeys(n)) return FirstsByKeys(n, k);
    const int64_t room = n <= kSortTile ? 0 : DivideUp(n, kSortTile) * k;
    AddScratch(2 * count_ * room * EntryBytes());
    int64_t left = n, half = 0;
    for (int phase = 0;; phase = 2, half = 1 - half) {
      const int64_t tiles = DivideUp(left, kSortTile);
      Add(phase, count_ * tiles, {left, half | (tiles == 1 ? 2 : 0), k, room});
      if (tiles == 1) return;
      left = (tiles - 1) * k + std::min(k, left - (tiles - 1) * kSortTile);
    }
  }

  // Whether seek.h finds the elements of these ranks in rows of n.
  bool CanSeek(int64_t n, int64_t ranks) const {
    return n > kSortTile && ranks <= kMostRanks &&
           !IsComplex(static_cast<DType>(operand(0).operand().dtype()));
  }

  void Seek(int64_t n, int64_t ranks) {
    const int64_t seeks = 2 * count_ * ranks * 16;  // struct Seek
    if (count_ >= (is_cuda() ? kEnoughSeekingCuda : kEnoughSeekingCpu) ||
        (!is_cuda() && n < kLeastSoughtTogether)) {
      AddScratch(seeks);
      const int64_t room = 2 * count_ * n * std::max<int64_t>(ItemBytes(), 4), at = Scratch();
      const bool in_vectors = !is_cuda() && n > kKeyedOnStack && room <= kTableBytes * 4;
      if (in_vectors) AddScratch(room);
      return Add(3, count_, {0, 0, 0, in_vectors ? at : 0});
    }
    if (is_cuda()) {
      SeekByMany(n, ranks, 4);
      return;
    }
    const int64_t bins = int64_t{1} << kSeekBitsCpu;
    const int64_t size =
        std::max(kLeastSoughtCpu, DivideUp(n, std::max<int64_t>(kGroupChunksCpu / count_, 1)));
    const int64_t chunks = DivideUp(n, size);
    AddScratch(seeks + 2 * count_ * chunks * ranks * bins * 8);
    Add(4, count_ * ranks, {size, chunks});
    for (int64_t digit = 0; digit < DivideUp(KeyBits(), kSeekBitsCpu); ++digit) {
      Add(5, count_ * chunks, {size, chunks, digit});
      Add(6, count_, {size, chunks, digit});
    }
  }

  // The passes of narrow.h, from `phase` on. Returns the size of a row's chunks and their number.
  std::array<int64_t, 4> SeekByMany(int64_t n, int64_t ranks, int phase) {
    const int64_t counts = std::max(ranks << kSeekBits, int64_t{1} << kSeekFirstBits);
    const int64_t wanted = DivideUp(int64_t{target_.num_multiprocessors} * 4, count_);
    const int64_t size =
        DivideUp(std::max(4 * kBlockElements, DivideUp(n, wanted)), kRoutineThreads) *
        kRoutineThreads;
    const int64_t chunks = DivideUp(n, size);
    AddScratch(count_ * (2 * ranks * 16 + 2 * counts * 8 + 32 + n / 4 * EntryBytes()));
    AddScratch(DivideUp(Scratch(), 16) * 16 - Scratch());
    Add(phase, count_ * counts);
    const int64_t rest = std::max<int64_t>(KeyBits() - kSeekFirstBits, 0);
    for (int64_t digit = 0; digit <= DivideUp(rest, kSeekBits); ++digit) {
      Add(phase + 1, count_ * chunks, {size, chunks, digit});
      Add(phase + 2, count_, {size, chunks, digit});
    }
    return {size, chunks};
  }

  // The first elements of few long rows, without sorted tiles.
  void TopBySeeking(int64_t n, int64_t k) {
    const int phase = FirstRadixPhase(launch_.routine()) + 4;
    AddScratch(DivideUp(count_ * k * EntryBytes(), 16) * 16);
    std::array<int64_t, 4> arguments = SeekByMany(n, 1, phase);
    arguments[3] = Scratch();
    AddScratch(count_ * arguments[1] * 8);
    Add(phase + 3, count_ * arguments[1], arguments);
    Add(phase + 4, count_ * arguments[1], arguments);
    Add(2, count_, {k, 3, k, k});
  }

  void Select() {
    shape_.may_fault = true;
    const int64_t n = operand(0).own_extents(0), ranks = last().own_extents(0);
    if (count_ == 0 || ranks == 0) return;
    if (n <= kSortTile) return Add(7, count_);
    if (CanSeek(n, ranks)) return Seek(n, ranks);
    const int64_t half = Sort(false);
    Add(8, count_ * ranks, {0, half});
  }

  void Partition() {
    const int64_t n = operand(0).own_extents(0), places = launch_.scalars_size();
    if (n == 0 || count_ == 0) return;
    // A sort has fewer passes than a search by rank and a move, unless there are many digits.
    const bool sorts = CanRadixSort(n) && (ItemBytes() <= 4 || n <= kMostPartedBySort);
    if (sorts || !CanSeek(n, places)) {
      Sort();
      return;
    }
    Seek(n, places);
    const int64_t size = std::max(is_cuda() ? int64_t{64} : kLeastSoughtCpu,
                                  DivideUp(n, is_cuda() ? kRunsCuda : kGroupChunksCpu));
    const int64_t runs = DivideUp(n, size), at = Scratch();
    AddScratch(count_ * runs * (2 * places + 1) * 8);
    const std::array<int64_t, 4> arguments = {size, runs, 0, at};
    Add(7, count_ * runs, arguments);
    Add(8, count_, arguments);
    Add(9, count_ * runs, arguments);
  }
};

}  // namespace

RoutineShape PlanOrder(const wire::RoutineLaunch& launch, const RoutineTarget& target) {
  return OrderPlanner(launch, target).Plan();
}

}  // namespace stride::codegen
