#include "server/worker/codegen/routine_planner.h"

#include <algorithm>

namespace stride::codegen {
namespace {

constexpr int64_t kSurelyNarrow = int64_t{1} << 30;
constexpr int64_t kRadixBins = 256, kRadixPlanBytes = 64;  // as in radix.h
// tiles: least elements, and tiles per multiprocessor
constexpr int64_t kLeastRadixTile = 2048, kEnoughTiles = 2;

}  // namespace

int64_t Product(const google::protobuf::RepeatedField<int64_t>& extents) {
  int64_t product = 1;
  for (int64_t extent : extents) product *= extent;
  return product;
}

int64_t RoutinePlanner::IndexBytes() const {
  bool narrow = count_ < kSurelyNarrow;
  for (const wire::RoutineOperand& operand : launch_.operands())
    narrow = narrow && Product(operand.own_extents()) < kSurelyNarrow;
  return narrow ? 4 : 8;
}

std::array<int64_t, 4> RoutinePlanner::RadixSort(int64_t rows, int64_t n, int64_t most_in_tile,
                                                 int64_t digits, int64_t item_bytes,
                                                 int64_t place_bytes, bool keeps) {
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

}  // namespace stride::codegen
