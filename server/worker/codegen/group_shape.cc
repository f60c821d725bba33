#include "server/worker/codegen/group_shape.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "server/worker/codegen/routine_planner.h"

namespace stride::codegen {
namespace {

using Code = wire::RoutineCode;

// Bounds of group.h: most parts of the elements that are combined concurrently, and fewest elements
// per part.
constexpr int64_t kGroupChunksCuda = 8192, kLeastGroupedCuda = 64;
constexpr int64_t kLeastGroupedCpu = 4096;
// A group's first element in a part costs a processor as much as ten others. A few parts still pay,
// for several cores.
constexpr int64_t kLeastInGroupCpu = 64, kFewGroupChunks = 4;
constexpr int64_t kGroupPlaces = 512;    // places that a processor's core handles together
constexpr int64_t kLeastSorted = 16384;  // elements from which a GPU sorts by group
constexpr int64_t kEnoughSlots = 65536, kMostCopies = 1024, kSlotBytes = 20;  // bounds of sums.h
constexpr int64_t kFewIndices = 16;                     // most indices that one GPU thread handles
constexpr int64_t kEntriesTile = 16 * kRoutineThreads;  // kRadixItems in entries.h, times threads
constexpr int64_t kShortRun = 32;                       // as in runs.h

class GroupPlanner : public RoutinePlanner {
 public:
  using RoutinePlanner::RoutinePlanner;

  RoutineShape Plan() {
    switch (launch_.routine()) {
      case Code::ROUTINE_HISTOGRAM:
        Histogram();
        break;
      case Code::ROUTINE_GROUP_REDUCE:
        Group(operand(0).own_extents(0), launch_.options(1) != 0);
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
};

}  // namespace

RoutineShape PlanGroups(const wire::RoutineLaunch& launch, const RoutineTarget& target) {
  return GroupPlanner(launch, target).Plan();
}

}  // namespace stride::codegen
