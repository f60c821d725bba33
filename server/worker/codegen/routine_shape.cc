#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/store/dtype.h"
#include "server/worker/codegen/launch_abi.h"

// Splits each routine into passes. The sizes are those of the algorithms in routines/.
namespace stride::codegen {
namespace {

using Code = wire::RoutineCode;
using Launch = wire::RoutineLaunch;

constexpr int64_t kBlockElements = 2048;  // elements per step of a block: 8 per thread
constexpr int64_t kMaxChunks = 1024;      // chunks whose totals one thread sums
// With fewer rows, a GPU's threads or a processor's cores have too little work.
constexpr int64_t kEnoughRowsCuda = 8192;
constexpr int64_t kEnoughRowsCpu = 64;
constexpr int64_t kSortTile = 1024;
constexpr int64_t kLeastTiled = 512;  // row length from which a block handles each of many rows
constexpr int64_t kTilesGroup = 32;   // kGroup in tiles.h
constexpr int64_t kMarksTile = 4096, kMarksWarps = 8, kMarksChunks = 2048;  // as in marks.h
// Bounds of columns.h: threads that occupy a GPU, fewest elements per chunk, chunks of a row that
// one thread combines, and rows from which on threads read whole sectors.
constexpr int64_t kColumnThreads = 262144, kLeastColumnChunk = 16, kMostColumnChunks = 256;
constexpr int64_t kLeastColumns = 512;

// Bounds of radix.h: shorter rows are merged, and so are rows whose counts would exceed 32 bits.
constexpr int64_t kLeastRadix = 4096, kMostRadix = (int64_t{1} << 32) - 1;
constexpr int64_t kSurelyNarrow = int64_t{1} << 30;
constexpr int64_t kRadixBins = 256, kRadixPlanBytes = 64;
// tiles: least elements, and tiles per multiprocessor
constexpr int64_t kLeastRadixTile = 2048, kEnoughTiles = 2;
constexpr int64_t kMostPartedBySort = int64_t{1} << 22;  // elements of 8 bytes

// Bounds of keyed.h: its kMergedItems and kStackItems, and the smallest tiles that a core sorts or
// searches.
constexpr int64_t kKeyedGroup = 4096, kKeyedOnStack = 8192;
constexpr int64_t kColumns = 16, kColumnBytes = 288 << 10;  // as kColumns, kColumnItems
constexpr int64_t kLeastKeyedTile = 32768, kLeastFirstsTile = 65536;

// Bounds of group.h: most parts of the elements that are combined concurrently, and fewest elements
// per part.
constexpr int64_t kGroupChunksCuda = 8192, kLeastGroupedCuda = 64;
constexpr int64_t kGroupChunksCpu = 64, kLeastGroupedCpu = 4096;
// A group's first element in a part costs a processor as much as ten others. A few parts still pay,
// for several cores.
constexpr int64_t kLeastInGroupCpu = 64, kFewGroupChunks = 4;
constexpr int64_t kGroupPlaces = 512;    // places that a processor's core handles together
constexpr int64_t kLeastSorted = 16384;  // elements from which a GPU sorts by group
constexpr int64_t kEnoughSlots = 65536, kMostCopies = 1024, kSlotBytes = 20;  // bounds of sums.h
constexpr int64_t kFewIndices = 16;                     // most indices that one GPU thread handles
constexpr int64_t kEntriesTile = 16 * kRoutineThreads;  // kRadixItems in entries.h, times threads
constexpr int64_t kShortRun = 32;                       // as in runs.h
constexpr int64_t kTableBytes = int64_t{64} << 20;

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

constexpr int64_t kSearchedTogether = 64;  // kTogether in search.h
constexpr int64_t kScatterOrders = 2;      // kOrders in scatter.h

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t Product(const google::protobuf::RepeatedField<int64_t>& extents) {
  int64_t product = 1;
  for (int64_t extent : extents) product *= extent;
  return product;
}

class Planner {
 public:
  Planner(const Launch& launch, const RoutineTarget& target)
      : launch_(launch), target_(target), count_(Product(launch.extents())) {}

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
      case Code::ROUTINE_CORRELATE:
        Add(0, DivideUp(last().own_extents(0), is_cuda() ? 4 : 32));
        break;
      case Code::ROUTINE_HISTOGRAM:
        Histogram();
        break;
      case Code::ROUTINE_GROUP_REDUCE:
        Group(operand(0).own_extents(0), launch_.options(1) != 0);
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
      case Code::ROUTINE_APPLY_AT:
        ApplyAt();
        break;
      default:
        break;
    }
    return std::move(shape_);
  }

 private:
  bool is_cuda() const { return target_.num_multiprocessors > 0; }
  const wire::RoutineOperand& operand(int i) const { return launch_.operands(i); }
  const wire::RoutineOperand& last() const { return launch_.operands(launch_.operands_size() - 1); }

  void Add(int phase, int64_t items, std::array<int64_t, 4> arguments = {}) {
    if (items > 0) shape_.passes.push_back({phase, items, arguments});
  }
  int64_t ItemBytes() const { return ItemSize(static_cast<DType>(operand(0).operand().dtype())); }
  int64_t Scratch() const { return static_cast<int64_t>(shape_.scratch_bytes); }
  void AddScratch(int64_t bytes) { shape_.scratch_bytes += static_cast<uint64_t>(bytes); }

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

  void ApplyAt() {
    shape_.may_fault = true;
    if (count_ == 0) return;
    int64_t among = 1;
    for (int axis = 0; axis < launch_.extents_size(); ++axis) {
      if (last().operand().strides(axis) == 0) among *= launch_.extents(axis);
    }
    const int64_t elsewhere = count_ / among;
    if (!is_cuda()) {
      Add(0, DivideUp(count_, kBlockElements), {kBlockElements});
      return Add(1, elsewhere, {0, 0, among});
    }
    if (among <= kFewIndices || among > kMostRadix) {
      Add(0, count_);
      return Add(1, elsewhere, {0, 0, among});
    }
    const bool sums = launch_.options(3) != 0;
    const Slots slots = SlotsOf(elsewhere);
    if (!sums || slots.targets > std::max(count_, kTableBytes / kSlotBytes))
      return Runs(among, elsewhere, SortEntries(among, Product(last().own_extents())));
    const bool floats = IsFloat(static_cast<DType>(last().operand().dtype()));
    if (floats) Runs(among, elsewhere, SortEntries(among, Product(last().own_extents())));
    AddSums(slots, floats);
  }

  // The slots of sums.h: several per target when there are few targets, to spread their words.
  struct Slots {
    int64_t targets = 0, copies = 1;
    int64_t count() const { return targets * copies; }
  };
  Slots SlotsOf(int64_t elsewhere) const {
    Slots slots{Product(last().own_extents()) * elsewhere};
    const auto wanted = static_cast<uint64_t>(kEnoughSlots / std::max<int64_t>(slots.targets, 1));
    slots.copies = std::clamp<int64_t>(std::bit_floor(wanted), 1, kMostCopies);
    return slots;
  }

  // Inserts the sums' passes before the existing ones: those of a sort, which do nothing if sums
  // suffice.
  void AddSums(const Slots& slots, bool floats) {
    const std::vector<RoutinePass> others = std::exchange(shape_.passes, {});
    const int64_t words = floats ? DivideUp(5 * slots.count(), 2) : slots.count();
    const int64_t wanted = int64_t{target_.num_multiprocessors} * 8;
    const int64_t part = std::max(DivideUp(count_, wanted), kBlockElements);
    const std::array<int64_t, 4> arguments = {Scratch(), slots.copies, slots.targets, part};
    AddScratch(words * 8);
    const int phase = FirstRadixPhase(launch_.routine()) + 6;
    Add(phase, words, arguments);
    if (floats) Add(phase + 1, DivideUp(count_, part), arguments);
    Add(phase + 2, count_, arguments);
    if (slots.copies > 1) Add(phase + 3, slots.targets, arguments);
    Add(phase + 4, slots.targets, arguments);
    shape_.passes.insert(shape_.passes.end(), others.begin(), others.end());
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

  // Size of the compiled code's struct Entry; 8 bytes for the index, which may take 4 there.
  int64_t EntryBytes() const {
    const DType dtype = static_cast<DType>(operand(0).operand().dtype());
    return launch_.options(1) == 0 ? ItemSize(dtype) : DivideUp(ItemSize(dtype), 8) * 8 + 8;
  }

  // At least the size of the compiled code's Index (ops/routine_plan.cc: narrow).
  int64_t IndexBytes() const {
    bool narrow = count_ < kSurelyNarrow;
    for (const wire::RoutineOperand& operand : launch_.operands())
      narrow = narrow && Product(operand.own_extents()) < kSurelyNarrow;
    return narrow ? 4 : 8;
  }

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
  // Sorts rows of n, whose keys have `digits`, in scratch memory appended at its present end.
  // Returns the arguments of a pass. One more word is cleared.
  std::array<int64_t, 4> RadixSort(int64_t rows, int64_t n, int64_t most_in_tile, int64_t digits,
                                   int64_t item_bytes, int64_t place_bytes, bool keeps) {
    const int64_t enough = DivideUp(rows * n, int64_t{target_.num_multiprocessors} * kEnoughTiles);
    const int64_t least = place_bytes > 0 ? most_in_tile : std::min(kLeastRadixTile, most_in_tile);
    const int64_t tiles = DivideUp(
        n, std::clamp(DivideUp(enough, kRoutineThreads) * kRoutineThreads, least, most_in_tile));
    const int64_t halves = std::min<int64_t>(digits - 1, 2), at = Scratch();
    const int64_t counts = rows * digits * kRadixBins * 4 + 64;
    const int64_t cleared = counts + rows * tiles * kRadixBins * 8 + 8;
    AddScratch(rows * kRadixPlanBytes + DivideUp(cleared, 16) * 16);
    if (keeps) AddScratch(DivideUp(rows * n * item_bytes, 16) * 16);
    AddScratch(DivideUp(halves * rows * n * item_bytes, 16) * 16);
    AddScratch(DivideUp(halves * rows * n * place_bytes, 16) * 16);
    const int64_t wanted = DivideUp(int64_t{target_.num_multiprocessors} * 8, rows);
    const int64_t part = std::max(DivideUp(n, wanted), kBlockElements);
    const int64_t parts = DivideUp(n, part);
    const int phase = FirstRadixPhase(launch_.routine());
    Add(phase, cleared / 8, {0, 0, at, digits});
    Add(phase + 1, rows * parts, {part, parts, at, digits});
    Add(phase + 2, rows, {0, 0, at, digits});
    for (int64_t digit = 0; digit < digits; ++digit)
      Add(phase + 3, rows * tiles, {digit, tiles, at, digits});
    return {0, tiles, at, digits};
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
  int64_t KeyBits() const { return 8 * ItemSize(static_cast<DType>(operand(0).operand().dtype())); }

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

  // Size of the compiled code's struct Part: the accumulator and a bool.
  int64_t PartBytes() const {
    const int64_t item = ItemSize(static_cast<DType>(launch_.scalars(0).dtype()));
    return item <= 4 ? 2 * item : DivideUp(item + 1, 8) * 8;
  }

  // Reduces elements along one axis by group, in order. The split depends only on the shape.
  void Group(int64_t n, bool may_be_cut) {
    shape_.may_fault = true;
    const int64_t groups = last().own_extents(0);
    if (count_ == 0 || groups == 0) return;
    if (CountsGroups(launch_.routine(), launch_.options())) return Tally(n, groups);
    // The threads of a block share sorted elements, not places.
    if (is_cuda() && n >= kLeastSorted && n <= kMostRadix && count_ < 32)
      return GroupBySorting(n, may_be_cut);
    const int64_t places = is_cuda() ? 1 : std::min(count_, kGroupPlaces);
    const int64_t parts = DivideUp(count_, places);
    const int64_t row = groups * count_ * PartBytes();
    int64_t chunks = 1;
    if (may_be_cut) {
      const int64_t wanted = is_cuda() ? kGroupChunksCuda : kGroupChunksCpu;
      const int64_t least = is_cuda() ? kLeastGroupedCuda : kLeastGroupedCpu;
      int64_t by_groups = 2 * n / groups;
      if (!is_cuda())
        by_groups = std::min(by_groups, std::max(n / groups / kLeastInGroupCpu, kFewGroupChunks));
      chunks = std::min({wanted / parts, n / least, by_groups, kTableBytes / row});
      chunks = std::max<int64_t>(chunks, 1);
    }
    const int64_t size = std::max<int64_t>(DivideUp(n, chunks), 1);
    chunks = std::max<int64_t>(DivideUp(n, size), 1);
    AddScratch(chunks * row);
    const std::array<int64_t, 4> arguments = {size, chunks, places, parts};
    Add(0, chunks * groups * count_, arguments);
    Add(1, chunks * parts, arguments);
    Add(is_cuda() && chunks > 64 ? 3 : 2, groups * count_, arguments);
  }

  // Sorts n entries by group into the beginning of the scratch memory.
  std::array<int64_t, 4> SortEntries(int64_t n, int64_t groups) {
    int64_t digits = 1;
    while (digits < 8 && groups >> (8 * digits) != 0) ++digits;
    // Groups and their sorted indices.
    AddScratch(DivideUp(n * 2 * IndexBytes(), 16) * 16);
    return RadixSort(1, n, kEntriesTile, digits, IndexBytes(), IndexBytes(), true);
  }

  void Runs(int64_t n, int64_t elsewhere, const std::array<int64_t, 4>& arguments) {
    AddScratch((n / kShortRun + 2) * 8);
    const int phase = FirstRadixPhase(launch_.routine()) + 4;
    Add(phase, n * elsewhere, arguments);
    Add(phase + 1, int64_t{target_.num_multiprocessors} * 16, arguments);
  }

  void GroupBySorting(int64_t n, bool may_be_cut) {
    const int64_t groups = last().own_extents(0);
    const std::array<int64_t, 4> sorted = SortEntries(n, groups);
    const int fill = FirstRadixPhase(launch_.routine()) + 6;
    Add(fill, groups * count_);
    if (!may_be_cut) return Runs(n, count_, sorted);
    const int64_t item = ItemSize(static_cast<DType>(launch_.scalars(0).dtype()));
    const int64_t tiles = DivideUp(n, kRoutineThreads * (item > 4 ? 4 : 8)), at = Scratch();
    AddScratch(2 * tiles * count_ * PartBytes());
    Add(fill + 1, tiles * count_, {at, tiles});
    Add(fill + 2, tiles * count_, {at, tiles});
  }

  void Histogram() {
    const int64_t n = Product(operand(0).own_extents()), bins = last().own_extents(0);
    if (launch_.options(1) != 0) return Group(n, true);
    Tally(n, bins);
  }

  // Counts the elements of groups.
  void Tally(int64_t n, int64_t groups) {
    // Counts may be added in any order: a GPU's blocks share a row.
    int64_t chunks =
        std::min<int64_t>(DivideUp(n, kBlockElements), target_.num_multiprocessors * 8);
    int64_t rows = 1;
    if (!is_cuda()) {
      chunks = std::min(
          {kGroupChunksCpu, DivideUp(n, kLeastGroupedCpu), std::max<int64_t>(n / groups, 1)});
      rows = std::max<int64_t>(chunks, 1);
    }
    AddScratch(rows * groups * 8);
    const int64_t size = chunks == 0 ? 0 : DivideUp(n, chunks);
    Add(4, rows * groups);
    Add(5, chunks, {size, rows, is_cuda()});
    Add(6, groups, {size, rows});
  }

  const Launch& launch_;
  const RoutineTarget& target_;
  const int64_t count_;
  RoutineShape shape_;
};

}  // namespace

int FirstRadixPhase(Code::Routine routine) {
  switch (routine) {
    case Code::ROUTINE_SORT:
    case Code::ROUTINE_TOP_K:
      return 3;
    case Code::ROUTINE_SELECT:
      return 9;
    case Code::ROUTINE_PARTITION:
      return 10;
    case Code::ROUTINE_GROUP_REDUCE:
    case Code::ROUTINE_HISTOGRAM:
      return 7;
    case Code::ROUTINE_APPLY_AT:
      return 2;
    default:
      return -1;
  }
}

bool CountsGroups(Code::Routine routine, const RoutineOptions& options) {
  if (routine == Code::ROUTINE_HISTOGRAM) return options.size() > 1 && options[1] == 0;
  return options.size() > 2 && options[2] != 0;
}

bool SortsGroups(Code::Routine routine, const RoutineOptions& options) {
  return !CountsGroups(routine, options);
}

absl::Span<const PhaseKind> RoutinePhases(Code::Routine routine, const RoutineTarget& target) {
  static constexpr PhaseKind T = PhaseKind::kThread, B = PhaseKind::kBlock;
  static constexpr PhaseKind kAccumulateCuda[] = {T, T, B, T, T, T}, kSearchCuda[] = {T},
                             kCompressCuda[] = {B, B, T}, kSortCuda[] = {B, T, B, T, B, B, B},
                             kTopCuda[] = {B, T, B, T, B, B, B, T, B, B, B, B},
                             kSelectCuda[] = {B, T, B, B, T, B, B, B, T, T, B, B, B},
                             kPartitionCuda[] = {B, T, B, B, T, B, B, T, B, T, T, B, B, B},
                             kGroupCuda[] = {T, T, T, B, T, B, T, T, B, B, B, T, B, T, B, B},
                             kApplyAtCuda[] = {T, T, T, B, B, B, T, B, T, B, T, B, T};
  if (target.num_multiprocessors > 0) {
    switch (routine) {
      case Code::ROUTINE_ACCUMULATE:
        return kAccumulateCuda;
      case Code::ROUTINE_COMPRESS:
        return kCompressCuda;
      case Code::ROUTINE_SORT:
        return kSortCuda;
      case Code::ROUTINE_TOP_K:
        return kTopCuda;
      case Code::ROUTINE_SELECT:
        return kSelectCuda;
      case Code::ROUTINE_PARTITION:
        return kPartitionCuda;
      case Code::ROUTINE_GROUP_REDUCE:
      case Code::ROUTINE_HISTOGRAM:
        return kGroupCuda;
      case Code::ROUTINE_APPLY_AT:
        return kApplyAtCuda;
      case Code::ROUTINE_SEARCH:
        return kSearchCuda;
      default:
        break;
    }
  }
  static constexpr PhaseKind kAccumulate[] = {T, B, T, B}, kOne[] = {T}, kOneBlock[] = {B},
                             kScatter[] = {T, T, T, T, T, T}, kCompress[] = {B, T, B, T},
                             kSort[] = {B, T, B, B, B, T, T, B, B, B, B}, kApplyAt[] = {T, T},
                             kSelect[] = {B, T, B, B, T, B, B, B, T},
                             kPartition[] = {B, T, B, B, T, B, B, T, B, T, B, B, T, T, B, B, B, B},
                             kGroup[] = {T, T, T, B, T, B, T};
  switch (routine) {
    case Code::ROUTINE_ACCUMULATE:
      return kAccumulate;
    case Code::ROUTINE_SEARCH:
      return kOneBlock;
    case Code::ROUTINE_GATHER:
    case Code::ROUTINE_FOLD:
    case Code::ROUTINE_GUFUNC:
    case Code::ROUTINE_INTERPOLATE:
    case Code::ROUTINE_CORRELATE:
      return kOne;
    case Code::ROUTINE_APPLY_AT:
      return kApplyAt;
    case Code::ROUTINE_SCATTER:
      return kScatter;
    case Code::ROUTINE_COMPRESS:
      return kCompress;
    case Code::ROUTINE_SORT:
    case Code::ROUTINE_TOP_K:
      return kSort;
    case Code::ROUTINE_SELECT:
      return kSelect;
    case Code::ROUTINE_PARTITION:
      return kPartition;
    case Code::ROUTINE_GROUP_REDUCE:
    case Code::ROUTINE_HISTOGRAM:
      return kGroup;
    default:
      return {};
  }
}

std::string PhaseEntry(int phase) { return absl::StrCat("stride_phase", phase); }

RoutineShape PlanRoutine(const Launch& launch, const RoutineTarget& target) {
  return Planner(launch, target).Plan();
}

LaunchShape PassShape(const Launch& launch, const RoutinePass& pass, const RoutineTarget& target) {
  const bool block = RoutinePhases(launch.routine(), target)[pass.phase] == PhaseKind::kBlock;
  const int64_t blocks = block ? pass.items : DivideUp(pass.items, kRoutineThreads);
  const int64_t limit = int64_t{std::max(target.num_multiprocessors, 1)} * 32;
  LaunchShape shape;
  shape.block[0] = kRoutineThreads;
  shape.grid[0] = static_cast<uint32_t>(std::clamp<int64_t>(blocks, 1, limit));
  return shape;
}

LaunchBlock PackRoutine(const Launch& launch, absl::Span<const uint64_t> addresses,
                        uint64_t scratch_address, uint64_t fault_address) {
  LaunchBlock block(8);
  block[1] = static_cast<uint64_t>(Product(launch.extents()));
  block[6] = scratch_address;
  block[7] = fault_address;
  auto append = [&](const google::protobuf::RepeatedField<int64_t>& values) {
    for (int64_t value : values) block.push_back(static_cast<uint64_t>(value));
  };
  append(launch.extents());
  for (int i = 0; i < launch.operands_size(); ++i) {
    const wire::RoutineOperand& operand = launch.operands(i);
    block.push_back(addresses[i]);
    append(operand.operand().strides());
    append(operand.own_extents());
    if (operand.own_extents().empty()) block.push_back(1);
    append(operand.own_strides());
    if (operand.own_strides().empty()) block.push_back(0);
  }
  if (block.size() % 2 != 0) block.push_back(0);
  for (const wire::ScalarValue& scalar : launch.scalars()) {
    uint64_t slot[2] = {0, 0};
    const std::string& bytes = scalar.value();
    std::copy_n(bytes.data(), std::min(bytes.size(), sizeof(slot)), reinterpret_cast<char*>(slot));
    block.insert(block.end(), slot, slot + 2);
  }
  return block;
}

void SetPass(const RoutinePass& pass, LaunchBlock* block) {
  (*block)[0] = static_cast<uint64_t>(pass.items);
  for (int i = 0; i < 4; ++i) (*block)[2 + i] = static_cast<uint64_t>(pass.arguments[i]);
}

}  // namespace stride::codegen
