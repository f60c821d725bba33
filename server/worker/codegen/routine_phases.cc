#include "absl/strings/str_cat.h"
#include "server/worker/codegen/launch_abi.h"

// The phases of each routine (routines/*.h), by device kind.
namespace stride::codegen {
namespace {

using Code = wire::RoutineCode;

}  // namespace

std::string PhaseEntry(int phase) { return absl::StrCat("stride_phase", phase); }

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

}  // namespace stride::codegen
